"""Compares two kernels instruction by instruction: renamed registers, changed order, added and removed work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from assay.inspect.evidence import DiffEvidence, Spills, Summary
from assay.inspect.row import Row
from assay.record import Record

if TYPE_CHECKING:
    from assay.inspect.verb import Inspection

_REGISTER = re.compile(r"\b(UR|UP|R|P|B|SB)(\d+)\b")
_LABEL = re.compile(r"`\([^)]*\)")
_REUSE = re.compile(r"\.reuse\b")
_Shape = tuple[str, ...]


class Kind(StrEnum):
    SAME = "same"
    RENAMED = "renamed"
    """The same except for a consistent renaming of registers."""
    RESCHEDULED = "rescheduled"
    """The same except for its control code."""
    CHANGED = "changed"
    """The same opcode with other modifiers or immediates."""
    REWIRED = "rewired"
    """The same instruction, but reading values from other instructions."""
    MOVED = "moved"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True)
class Pair:
    kind: Kind
    old: Row | None
    new: Row | None


@dataclass(frozen=True)
class Difference:
    pairs: tuple[Pair, ...]
    """In the order of the new code; a removed instruction keeps its old position."""

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(str(p.kind) for p in self.pairs))

    @property
    def equal(self) -> bool:
        """Whether both do the same work in the same order; registers and control codes may differ."""
        return all(p.kind in (Kind.SAME, Kind.RENAMED, Kind.RESCHEDULED) for p in self.pairs)


def difference(old: Sequence[Row], new: Sequence[Row]) -> Difference:
    pairs = list(_with_moves(list(_aligned(old, new))))
    partner = {o.address: n.address for o, n, _ in pairs if o and n}
    return Difference(tuple(_judged(pairs, partner, _Values(old), _Values(new))))


def shape(row: Row) -> _Shape:
    """Return the words of an instruction without the numbers of its registers and the names of its labels."""
    text = _LABEL.sub("L", _REUSE.sub("", row.text))
    return tuple(_REGISTER.sub(r"\1", text).split())


def _aligned(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    matcher = SequenceMatcher(None, [shape(r) for r in old], [shape(r) for r in new], autojunk=False)
    for what, a, b, c, d in matcher.get_opcodes():
        if what == "equal":
            yield from zip(old[a:b], new[c:d], strict=True)
        else:
            yield from _replaced(old[a:b], new[c:d])


def _replaced(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Pair instructions of the same opcode within a stretch that differs."""
    before, after = ([r.opcode.split(".")[0] for r in side] for side in (old, new))
    for what, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            yield from zip(old[a:b], new[c:d], strict=True)
        else:
            yield from ((r, None) for r in old[a:b])
            yield from ((None, r) for r in new[c:d])


def _with_moves(pairs: list[tuple[Row | None, Row | None]]) -> Iterator[tuple[Row | None, Row | None, bool]]:
    """Join a removed and an added instruction of the same shape into one that moved."""
    gone: dict[_Shape, list[int]] = {}
    for at, (old, new) in enumerate(pairs):
        if old and not new:
            gone.setdefault(shape(old), []).append(at)
    taken: set[int] = set()
    moved_from: dict[int, Row] = {}
    for at, (old, new) in enumerate(pairs):
        if new and not old and gone.get(shape(new)):
            origin = gone[shape(new)].pop(0)
            taken.add(origin)
            moved_from[at] = pairs[origin][0]  # type: ignore[assignment]
    for at, (old, new) in enumerate(pairs):
        if at in taken:
            continue
        yield (moved_from[at], new, True) if at in moved_from else (old, new, False)


class _Values:
    """The origin of each value in a kernel's registers, in order of address. Back edges are ignored."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.origins: dict[int, list[int | None]] = {}
        """For each instruction's address and each register in its text, the address of the last write before it."""
        self.number: dict[int, int] = {}
        """For each address, a number that is equal for instructions that compute the same from the same values."""
        written: dict[str, int] = {}
        for row in rows:
            fresh, names = _written(row), _registers(row.text)
            origins = [
                None if name in fresh and names.index(name) == at else written.get(name)
                for at, name in enumerate(names)
            ]
            self.origins[row.address] = origins
            self.number[row.address] = hash((shape(row), tuple(self.number.get(o or -1) for o in origins)))
            written |= dict.fromkeys(fresh, row.address)


def _judged(
    pairs: Sequence[tuple[Row | None, Row | None, bool]], partner: dict[int, int], before: _Values, after: _Values
) -> Iterator[Pair]:
    """Classify each pair. A register may have another name if it holds the same value."""
    paired = set(partner.values())

    def other(a: int | None, b: int | None) -> bool:
        """Return whether two reads see different values. False if a writer was removed or added, which is reported
        itself."""
        if a is None or b is None:
            return a in partner if a is not None else b in paired if b is not None else False
        same = partner.get(a) == b or before.number[a] == after.number[b]
        return not same and a in partner and b in paired

    for old, new, moved in pairs:
        if old is None or new is None:
            yield Pair(Kind.REMOVED if new is None else Kind.ADDED, old, new)
        elif shape(old) != shape(new):
            yield Pair(Kind.CHANGED, old, new)
        elif moved:
            yield Pair(Kind.MOVED, old, new)
        elif any(other(a, b) for a, b in zip(before.origins[old.address], after.origins[new.address], strict=True)):
            yield Pair(Kind.REWIRED, old, new)
        elif _registers(old.text) != _registers(new.text):
            yield Pair(Kind.RENAMED, old, new)
        else:
            yield Pair(Kind.SAME if _control(old) == _control(new) else Kind.RESCHEDULED, old, new)


def _registers(text: str) -> list[str]:
    return ["".join(m) for m in _REGISTER.findall(_LABEL.sub("", text))]


def _control(row: Row) -> tuple[Any, ...]:
    return row.stall, row.may_yield, row.write_barrier, row.read_barrier, row.waits, row.reuse


def _written(row: Row) -> list[str]:
    """Return the registers that it writes, according to its text: the first operand, and predicates next to it."""
    name, *modifiers = row.opcode.split(".")
    if not row.operands or name.startswith(("ST", "RED", "BAR", "BRA", "EXIT", "BSSY", "BSYNC")):
        return []
    first = row.operands[0]
    registers = _registers(first)[:1] if not first.startswith(("[", "desc")) else []
    if registers and (match := re.fullmatch(r"(UR|R)(\d+)", registers[0])):
        registers = [f"{match[1]}{int(match[2]) + i}" for i in range(_count(name, modifiers, row.width))]
    if name.endswith("SETP") or name in ("PLOP3", "IADD3", "IMAD", "LEA", "SHFL", "VOTE", "VOTEU"):
        registers += [r for o in row.operands[1:2] for r in _registers(o) if r.lstrip("U").startswith("P")]
    return registers


def _count(name: str, modifiers: Sequence[str], width: int | None) -> int:
    """Return how many registers a result takes."""
    if width:
        return max(1, width // 32)
    if name in ("HMMA", "IMMA", "QMMA"):
        return 4
    return (
        2
        if "WIDE" in modifiers or "64" in modifiers or name[0] == "D" or (name == "CS2R" and "32" not in modifiers)
        else 1
    )


def record(old: Inspection, new: Inspection) -> tuple[Record, list[tuple[str, Row | None, Row | None]]]:
    """Return the difference of two kernels as a record, and the pairs that differ."""
    assert old.table and new.table
    differences = difference(old.table.rows, new.table.rows)
    names = (old.record.kernel, new.record.kernel)
    summaries = [s for one in (old, new) if (s := one.evidence.summary)]
    changes = [(str(p.kind), p.old, p.new) for p in differences.pairs if p.kind not in _QUIET]
    evidence = DiffEvidence(
        differences.counts,
        differences.equal,
        summaries,
        [
            {
                "kind": kind,
                "old": a and {"address": a.address, "text": a.text, "line": a.source_line},
                "new": b and {"address": b.address, "text": b.text, "line": b.source_line},
            }
            for kind, a, b in changes
        ],
    )
    reason = described(differences, summaries[0], summaries[1], names)
    whole = replace(
        new.record,
        kernel=" → ".join(names),
        reason=reason,
        evidence=evidence.to_dict(),
        instructions=None,
        artifacts=[],
    )
    return whole, changes


_QUIET = (Kind.SAME, Kind.RENAMED, Kind.RESCHEDULED)


def described(differences: Difference, old: Summary, new: Summary, names: tuple[str, str]) -> str:
    """Describe the changes from one kernel to the other in sentences. `old` and `new` are the summaries of records."""
    counts = differences.counts
    if differences.equal:
        renamed, again = counts.get("renamed", 0), counts.get("rescheduled", 0)
        but = [f"{renamed} with other registers"] if renamed else []
        but += [f"{again} with other control codes"] if again else []
        return f"{names[0]} and {names[1]} are the same {old.instructions} instructions" + (
            f", {' and '.join(but)}." if but else ", to the last bit of their control codes."
        )
    sentences = [
        f"{names[1]} has {new.instructions} instructions where {names[0]} has {old.instructions}: "
        + ", ".join(f"{counts[k]} {k}" for k in ("added", "removed", "changed", "moved", "rewired") if counts.get(k))
        + "."
    ]
    mix = _delta(old.mix, new.mix)
    if mix:
        sentences.append(f"By pipe: {mix}.")
    opcodes = Counter(p.new.opcode.split(".")[0] for p in differences.pairs if p.kind is Kind.ADDED and p.new)
    opcodes.subtract(p.old.opcode.split(".")[0] for p in differences.pairs if p.kind is Kind.REMOVED and p.old)
    if some := ", ".join(f"{n:+d} {name}" for name, n in sorted(opcodes.items(), key=lambda i: -abs(i[1]))[:6] if n):
        sentences.append(f"Most of it: {some}.")
    if old.registers != new.registers:
        sentences.append(f"Registers: {old.registers} before, {new.registers} now.")
    if old.spills != new.spills:
        sentences.append(f"Spilled bytes: {_spilled(old.spills)} before, {_spilled(new.spills)} now.")
    for kind in dict.fromkeys((*old.widths, *new.widths)):
        before, after = old.widths.get(kind, {}), new.widths.get(kind, {})
        if before != after and not kind.startswith("constant"):
            sentences.append(f"Bits of each {kind}: {_wide(before)} before, {_wide(after)} now.")
    shares = old.occupancy.share, new.occupancy.share
    if None not in shares and shares[0] != shares[1]:
        sentences.append(f"Occupancy: {shares[0]:.0%} before, {shares[1]:.0%} now.")
    return " ".join(sentences)


def _delta(old: dict[str, int], new: dict[str, int]) -> str:
    changes = {k: new.get(k, 0) - old.get(k, 0) for k in dict.fromkeys((*old, *new))}
    return ", ".join(f"{n:+d} {k}" for k, n in changes.items() if n)


def _wide(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} × {width}" for width, n in counts.items()) or "none"


def _spilled(spills: Spills) -> str:
    return f"stores {spills.stores}, loads {spills.loads}"
