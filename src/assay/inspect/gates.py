"""Checks a kernel's code against what the kernel declares: `expects={"spills": 0, "widest_global_load": 128}`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.errors import SourceError
from assay.inspect.evidence import Summary
from assay.inspect.row import Row
from assay.inspect.summary import access
from assay.kernel import Kernel

OF = "of"
"""A key of `expects` that is not a gate: the name prefix of the launches that the gates apply to. Without it they apply
to all."""

OFFSETS = "offset_bits"
"""A key of `expects` that no instruction shows: 64, if offsets must not overflow 32 bits. `check` looks at addresses
(assay.check.past_32_bits)."""
_NO_GATES = (OF, OFFSETS)


def applies_to(expects: Mapping[str, Any], name: str) -> bool:
    return name.startswith(expects.get(OF, ""))


def broken(expects: Mapping[str, Any], rows: Sequence[Row], summary: Summary) -> list[str]:
    """Return each expectation that the code does not meet, with the source line to look at."""
    held = {name: wanted for name, wanted in expects.items() if name not in _NO_GATES}
    return [fault for name, wanted in held.items() if (fault := GATES[name](wanted, rows, summary))]


def refuse_unknown_gates(kernel: Kernel) -> None:
    """Raise SourceError if `expects` contains an unknown gate."""
    for name in kernel.expects:
        if name not in GATES and name not in _NO_GATES:
            raise SourceError(
                f"{kernel.name} expects '{name}', which is no gate",
                where=f"{kernel.file}:{kernel.line}",
                fix=f"one of: {', '.join((*GATES, *_NO_GATES))}",
            )
    if kernel.expects.get(OFFSETS, 64) != 64:
        raise SourceError(
            f"{kernel.name} expects {OFFSETS}={kernel.expects[OFFSETS]!r}",
            where=f"{kernel.file}:{kernel.line}",
            fix=f"write {OFFSETS}=64, or leave it out: 32 bits are what a check allows without it",
        )


def _spills(most: int, rows: Sequence[Row], summary: Summary) -> str:
    spilled = summary.spills.most
    first = next((r for r in rows if r.opcode.startswith(("STL", "LDL"))), None)
    return f"{spilled} bytes are spilled, {most} expected{_at(first)}" if spilled > most else ""


def _widest(kind: str) -> Callable[[int, Sequence[Row], Summary], str]:
    def gate(wanted: int, rows: Sequence[Row], summary: Summary) -> str:
        accesses = [r for r in rows if r.space == "global" and access(r) == kind]
        widest = max(accesses, key=lambda r: r.width or 0, default=None)
        bits = widest.width or 0 if widest else 0
        return f"the widest global {kind} has {bits} bits, {wanted} expected{_at(widest)}" if bits < wanted else ""

    return gate


def _registers(most: int, rows: Sequence[Row], summary: Summary) -> str:
    used = summary.registers
    fullest = max((r for r in rows if r.live_registers), key=lambda r: r.live_registers or 0, default=None)
    where = f"; most are live{_at(fullest)}" if fullest else ""
    return f"{used} registers, at most {most} expected{where}" if used is None or used > most else ""


def _uses(names: str | Sequence[str], rows: Sequence[Row], summary: Summary) -> str:
    gone = [n for n in _each(names) if not any(r.opcode.startswith(n) for r in rows)]
    return f"no {' and no '.join(gone)} in the code" if gone else ""


def _avoids(names: str | Sequence[str], rows: Sequence[Row], summary: Summary) -> str:
    unwanted = next((r for r in rows for n in _each(names) if r.opcode.startswith(n)), None)
    return f"{unwanted.opcode} in the code{_at(unwanted)}" if unwanted else ""


def _unrolled(wanted: bool, rows: Sequence[Row], summary: Summary) -> str:
    rolled = [loop for loop in summary.loops if loop.copies < 2]
    if wanted and summary.loops and len(rolled) == len(summary.loops):
        return f"no loop is unrolled: that at line {rolled[0].line} has one copy of its body"
    return ""


GATES: dict[str, Callable[[Any, Sequence[Row], Summary], str]] = {
    "spills": _spills,
    "max_registers": _registers,
    "widest_global_load": _widest("load"),
    "widest_global_store": _widest("store"),
    "uses": _uses,
    "avoids": _avoids,
    "unrolled": _unrolled,
}


def _each(names: str | Sequence[str]) -> Sequence[str]:
    return (names,) if isinstance(names, str) else names


def _at(row: Row | None) -> str:
    if row is None or row.source_line is None:
        return ""
    chain = "".join(f", inlined at {line}" for _, line in row.inlined[:1])
    return f" at {row.source_file}:{row.source_line}{chain}"
