"""The tables of `assay model compile`: the states, the total time of n calls from each, the steps of a sweep, and the
graph breaks. The terminal, the docs and the page draw the same tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.models.studies.compile.evidence import CompileEvidence, Step, Worth
from assay.models.studies.compile.planning import SHAPES
from assay.record import Record, Status
from assay.report.infer_tables import spread
from assay.report.table import Cell, Column, Note, Table
from assay.units import count, duration, si, times


@dataclass(frozen=True)
class State:
    """A record of `model compile`, with its evidence."""

    record: Record
    evidence: CompileEvidence

    @property
    def worth(self) -> Worth | None:
        return self.evidence.break_even

    @property
    def crossing(self) -> int | None:
        """Number of calls after which compiling has paid off."""
        return self.worth.calls if self.worth else None

    @property
    def fixed(self) -> float:
        """Seconds before the first steady call; zero in a warm process, where they are noise."""
        return self.evidence.compile_seconds or 0.0 if self.evidence.state != "warm" else 0.0

    def steady(self, arm: str) -> float:
        """Return the seconds of a steady call."""
        return (self.evidence.steady or {})[arm].median

    def curve(self, arm: str) -> dict[int, float]:
        """Return the total seconds by number of calls."""
        return dict((self.evidence.curve or {}).get(arm, ()))

    def after(self, arm: str, calls: int) -> str:
        """Return the total time of `calls` calls: measured, or else (~) the cost of compiling plus that many steady
        calls."""
        if calls in (measured := self.curve(arm)):
            return duration(measured[calls])
        return "~" + duration((self.fixed if arm == "compiled" else 0.0) + calls * self.steady(arm))


def read(records: Iterable[Record]) -> list[State]:
    """Return the records of `model compile`, with their evidence."""
    studied = (r for r in records if r.verb == "model" and r.evidence.get("study") == "compile")
    return [State(record, CompileEvidence.of(record)) for record in studied]


def parts(records: Sequence[Record], wide: bool) -> Iterator[Table[Any] | Note]:
    """Yield the tables and notes for each model, batch and mode. `wide` adds columns."""
    groups: dict[str, list[State]] = {}
    for state in read(records):
        groups.setdefault(_title(state), []).append(state)
    for title, group in groups.items():
        if timed := [state for state in group if state.worth]:
            threads = timed[0].evidence.threads
            where = count(threads, "thread") if threads else timed[0].record.provenance.get("gpu") or ""
            yield states(timed, f"{title}  ({where})", wide)
            yield _calls(timed)
        yield from (_sweep(s, f"{title}  (one process)") for s in group if s.evidence.steps)
        breaks = dict.fromkeys(str(b) for state in timed for b in state.evidence.graph_breaks or ())
        yield from (Note(f"graph break: {text}", loud=True) for text in breaks)
        skipped = (state for state in group if state.record.status is Status.SKIPPED)
        yield from (Note(f"– {state.evidence.state}: {state.record.reason}") for state in skipped)


def _title(state: State) -> str:
    """Return everything that identifies a group of records, without the state."""
    evidence = state.evidence
    batches = "batches" if evidence.state == "sweep" else "batch"
    about = [f"{batches} {', '.join(map(str, evidence.batches))}", evidence.dtype]
    about += [evidence.mode] * (evidence.mode != "default")
    about += [SHAPES[evidence.dynamic]] * (evidence.dynamic is not None)
    about += [evidence.backend] * (evidence.backend != "inductor")
    return f"{state.record.kernel}  {', '.join(about)}"


def states(timed: Sequence[State], title: str = "", wide: bool = True) -> Table[State]:
    """Return the table of states. The error is compiled's worst over eager's, both against float64."""
    columns: list[Column[State]] = [
        Column("", lambda s: s.record.kernel, page="model", left=True),
        Column("", lambda s: "+".join(map(str, s.evidence.batches)), page="batch"),
        Column("", lambda s: s.evidence.dtype, page="dtype", left=True),
        Column("", lambda s: s.evidence.mode, page="mode", left=True),
        Column("state", _state, left=True),
        Column("compile", lambda s: _seconds(s.evidence.compile_seconds or 0.0, 3)),
        Column("eager", lambda s: _seconds(s.steady("eager"))),
        Column("compiled", lambda s: _seconds(s.record.median or 0.0)),
        Column("±", lambda s: Cell(spread(s.record), f"±{spread(s.record)}"), page="95 %"),
        Column("speedup", _speedup, page="gain"),
        Column("pays after", lambda s: f"{s.crossing:,} calls" if s.crossing else str(s.worth and s.worth.verdict)),
        Column("graphs", lambda s: str(s.evidence.counts.graphs if s.evidence.counts else "")),
        Column("kernels", _kernels, page=""),
        Column("breaks" * wide, lambda s: str(s.evidence.counts.breaks if s.evidence.counts else ""), page="breaks"),
        Column("error" * wide, lambda s: _ratio(s.evidence.outputs.ratio if s.evidence.outputs else None), page=""),
    ]
    return Table(title, columns, timed)


def _state(state: State) -> Cell:
    name = state.evidence.state
    return Cell("[red]✗[/] " * (state.record.status is Status.FAIL) + name, name)


def _seconds(value: float, digits: int = 4) -> Cell:
    """Format seconds; `digits` applies on a page."""
    return Cell(duration(value), si(value, "s", digits))


def _speedup(state: State) -> Cell:
    median = state.evidence.speedup.median if state.evidence.speedup else 0.0
    return Cell(f"{median:.2f}×", times(median))


def _kernels(state: State) -> str:
    kernels = state.evidence.kernels or {}
    return f"{kernels['eager'].kernels:g} → {kernels['compiled'].kernels:g}" if kernels else ""


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}×"


def _calls(timed: Sequence[State]) -> Table[int]:
    """Return the table of the total times of several numbers of calls."""

    def of(state: State) -> Column[int]:
        return Column(state.evidence.state, lambda calls: state.after("compiled", calls))

    most = max(1000, *(10 * (state.crossing or 1) for state in timed))
    rows = [10**power for power in range(len(str(most)))]
    columns: list[Column[int]] = [
        Column("calls", lambda calls: f"{calls:,}", left=True),
        Column("eager", lambda calls: timed[0].after("eager", calls)),
        *map(of, timed),
    ]
    return Table("", columns, rows)


def _sweep(state: State, title: str) -> Table[Step]:
    columns: list[Column[Step]] = [
        Column("batch", lambda step: str(step.batch), left=True),
        Column("first call", lambda step: duration(step.first_seconds[0])),
        Column("then", lambda step: duration(sorted(step.first_seconds[1:])[len(step.first_seconds[1:]) // 2])),
        Column("compilations", lambda step: str(step.compilations)),
        Column("error", lambda step: _ratio(step.outputs.ratio)),
    ]
    return Table(title, columns, state.evidence.steps or [])
