"""The report of a swap: every site with its state, the reason, and how often it ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from assay.catalog import library

if TYPE_CHECKING:
    from assay.models.operators.contract import Tally

NO_RULE = "no rule names it"
ASKED = "a rule leaves it alone"
PART_OF = "part of "
"""Beginning of the reason of a module that a fused pair computes."""


class State(StrEnum):
    REPLACED = "replaced"
    LEFT = "left"
    FELL_BACK = "fell back"
    """Replaced, but at least one call was outside the kernel's contract and went to the original."""


@dataclass(frozen=True)
class Site:
    """One place in a model that computes an op."""

    path: str
    """Path of the module; for a functional call, of the innermost module that makes it."""
    op: str
    form: str
    """module, function or fused."""
    state: State
    why: str = ""
    """left: the reason; fell back: the most frequent reason; replaced: what limits its calls, if anything."""
    rule: str = ""
    """Key of the rule that decided."""
    kernel: str = ""
    backward: str = ""
    """What computes its gradient."""
    calls: int = 0
    """Calls of the kernel outside compiled graphs."""
    traced: int = 0
    """Compiled graphs that contain the kernel. Calls inside them are not counted, since counting would break the graph.
    """
    copied: int = 0
    """Calls for which an input had to be copied first, because the kernel cannot read its memory layout."""
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    """Reason → number of calls that went to the original."""
    tuned: str = ""
    """With `tuned=True`: the values given to its kernel so far, and the run of `assay tune` they come from."""

    @property
    def outcome(self) -> str:
        """The state and its reason as text."""
        if self.state is State.LEFT:
            return f"left: {self.why}"
        if self.state is State.FELL_BACK:
            return "; ".join(f"fell back {n}×: {reason}" for reason, n in self.fallbacks.items())
        notes = [self.why] if self.why else []
        notes += [f"an input copied first {self.copied}×"] if self.copied else []
        notes += [f"tuned: {self.tuned}"] if self.tuned else []
        return ": ".join(["replaced", *filter(None, ["; ".join(notes)])])


@dataclass
class Entry:
    """A site while its swap is active."""

    path: str
    op: str
    form: str
    rule: str = ""
    kernel: str = ""
    backward: str = ""
    left: str = ""
    """Why it was left; empty: it was replaced."""
    note: str = ""
    tuned: object = None
    """The tuned values it was given, whose `str` describes them; None if none were requested."""
    tally: Tally = field(kw_only=True)

    @property
    def range(self) -> str:
        """Name of the profiler range around each call of the kernel."""
        return f"assay.swap {self.path or '.'}:{self.op}"

    def site(self) -> Site:
        tally = self.tally
        state = State.LEFT if self.left else State.FELL_BACK if tally.fallbacks else State.REPLACED
        why = self.left or (tally.fallbacks.most_common(1)[0][0] if tally.fallbacks else self.note)
        return Site(
            self.path,
            self.op,
            self.form,
            state,
            why,
            self.rule,
            self.kernel,
            self.backward,
            tally.calls,
            tally.traced,
            tally.copied,
            dict(tally.fallbacks),
            str(self.tuned) if self.tuned is not None else "",
        )


class Report:
    """The sites of a swap, and its undo: `report.undo()`, or the end of `with assay.swap(…) as report:`."""

    def __init__(self, model: str, rules: Mapping[str, str], entries: Iterable[Entry], undo: Callable[[], None]):
        self.model, self.rules = model, dict(rules)
        self._entries, self._undo = list(entries), undo
        self.active = True

    @property
    def sites(self) -> tuple[Site, ...]:
        """All sites. Those of functional calls appear with their first call."""
        return tuple(e.site() for e in self._entries if e.form != "function" or e.tally.seen)

    def undo(self) -> None:
        """Restore the model; a second call does nothing. If a later swap of the same modules is active, raise an error
        and change nothing."""
        if self.active:
            self._undo()
            self.active = False

    def __enter__(self) -> Report:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.undo()

    def to_dict(self) -> dict[str, Any]:
        sites = [asdict(s) for s in self.sites]
        return {"model": self.model, "rules": self.rules, "active": self.active, "sites": sites}

    def __str__(self) -> str:
        sites = self.sites
        shown = [s for s in sites if s.why != NO_RULE]
        counts = Counter(s.state for s in shown)
        summary = ", ".join(f"{counts[state]} {state}" for state in State if counts[state]) or "no site"
        lines = [f"swap in {self.model}: {summary}{'' if self.active else ' (undone)'}"]
        if shown:
            lines += _table(shown)
        if others := Counter(s.op for s in sites if s.why == NO_RULE):
            lines.append("no rule names: " + ", ".join(f"{op} ×{n}" for op, n in sorted(others.items())))
        met = {s.rule for s in sites}
        hidden = {op: declared.hidden for declared in library.swappable() for op in declared.ops if declared.hidden}
        for key in (key for key in self.rules if key not in met):
            why = hidden.get(key.rpartition(":")[2], "")
            lines.append(f"rule '{key}': no call of it was seen yet{f' ({why})' if why else ''}")
        if any(s.traced for s in shown):
            lines.append("traced: compiled graphs with the kernel in them; calls inside those are not counted")
        return "\n".join(lines)

    __repr__ = __str__


_HEADS = ("site", "op", "form", "kernel", "backward", "calls", "traced", "")


def _table(sites: list[Site]) -> list[str]:
    rows = [_HEADS]
    for s in sites:
        counts = ("", "") if s.state is State.LEFT else (str(s.calls), str(s.traced))
        rows.append((s.path or "(the model)", s.op, s.form, s.kernel, s.backward, *counts, s.outcome))
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADS))]
    used = [i for i in range(len(_HEADS)) if any(row[i] not in ("", "0") for row in rows[1:])]
    return ["  ".join(row[i].ljust(widths[i]) for i in used).rstrip() for row in rows]
