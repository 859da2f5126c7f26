"""The tables of `assay bench`: one for each workload, the fastest kernel first. The terminal, the docs and the page
draw the same tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.bench.evidence import BenchEvidence
from assay.record import Record, Status, namesakes
from assay.report.rows import place
from assay.report.table import Cell, Column, Note, Table
from assay.units import duration, si

_MARKS = {Status.FAIL: ("✗ ", "red"), Status.INCONCLUSIVE: ("? ", "magenta")}
"""Marks of the times that no verdict supports, and their colours in a terminal."""


@dataclass(frozen=True)
class Timed:
    """A record of bench that has a time, with its evidence."""

    record: Record
    evidence: BenchEvidence
    name: str
    """The kernel's address, with its file if kernels of several files have that address."""
    median: float
    spread: float
    """Half of the interval, as a share of the median."""


def read(records: Sequence[Record]) -> list[Timed]:
    """Return the records of bench that have a time."""
    apart = namesakes(records)
    timed = []
    for record in (r for r in records if r.verb == "bench" and r.median):
        assert record.median is not None
        low, high = record.interval or (record.median, record.median)
        spread = (high - low) / 2 / record.median
        timed.append(Timed(record, BenchEvidence.of(record), record.named(apart), record.median, spread))
    return timed


def parts(records: Sequence[Record], wide: bool = True) -> Iterator[Table[Any] | Note]:
    """Yield a table for each workload, the notes that belong to it, and the legend. `wide` adds columns in a
    terminal."""
    benches = [r for r in records if r.verb == "bench"]
    apart, rows = namesakes(benches), read(benches)
    devices = {t.record.device for t in rows}
    cells: dict[tuple[str, str], list[Record]] = {}
    for record in benches:
        cells.setdefault((record.op, record.workload), []).append(record)
    for (op, workload), cell in cells.items():
        places: dict[str, list[Timed]] = {}
        for one in (t for t in rows if (t.record.op, t.record.workload) == (op, workload)):
            places.setdefault(place(one.record), []).append(one)
        for where, timed in places.items():
            threads = timed[0].evidence.threads
            shown = f"{threads} threads" if threads and len(devices) == 1 else where
            yield times(sorted(timed, key=lambda t: t.median), f"{op}  {workload}  ({shown})", wide)
        yield from unclear(cell)
        yield from (Note(f"– {r.named(apart)}  {r.reason}") for r in cell if r.status is Status.SKIPPED)
    yield from (Note(f"{r.named(apart)}: {text}") for r in benches for text in _settings(BenchEvidence.of(r)))
    yield from legend(rows)


def times(timed: Sequence[Timed], title: str = "", wide: bool = True) -> Table[Timed]:
    """Return the table of times. Without a title, a page has the workload in a column."""
    # Both are measured on a GPU only.
    memory = "memory" * any(t.evidence.peak_bytes is not None for t in timed)
    kernels = "kernels" * any(bool(t.evidence.launches) for t in timed)
    columns: list[Column[Timed]] = [
        Column("kernel", _name, left=True),
        Column("", lambda t: t.record.workload, page="" if title else "workload", left=True),
        Column("cold", lambda t: duration(t.median)),
        Column("±", lambda t: Cell(f"{t.spread:.1%}", f"±{t.spread:.2%}"), page="95 %"),
        Column("hot", lambda t: duration(t.evidence.hot.median) if t.evidence.hot else ""),
        Column("call", lambda t: duration(t.evidence.call.median) if t.evidence.call else ""),
        Column("GB/s", lambda t: f"{t.evidence.gbps:.1f}" if t.evidence.gbps is not None else ""),
        Column("TFLOP/s" * wide, _rate, page="TFLOP/s"),
        Column(memory * wide, _memory, page=memory),
        Column("compile" * wide, _compiled, page="compile"),
        Column(kernels * wide, lambda t: f"{t.evidence.launches:g}" if t.evidence.launches else "", page=kernels),
        Column("copy", lambda t: f"{t.evidence.share_of_copy:.0%}" if t.evidence.share_of_copy is not None else ""),
        Column("limit", _limit),
        Column("speedup", lambda t: f"{t.evidence.speedup.median:.2f}×" if t.evidence.speedup else ""),
    ]
    return Table(title, columns, timed)


def unclear(records: Sequence[Record]) -> Iterator[Note]:
    """Yield the reason of each record that is inconclusive."""
    apart = namesakes(records)
    for record in (r for r in records if r.status is Status.INCONCLUSIVE):
        yield Note(f"? {record.named(apart)} is inconclusive: {record.reason}")


def legend(rows: Sequence[Timed]) -> Iterator[Note]:
    """Yield the lines that explain the columns."""
    timed = [t.evidence for t in rows]
    if not timed:
        return
    yield Note(
        "cold: one call, its inputs in no cache (± half of its 95 % interval); hot: its inputs in a cache; "
        "call: from Python and back, launch included"
    )
    baselines = dict.fromkeys(e.baseline for e in timed if e.baseline)
    speedup = f"; speedup: over {', '.join(baselines)}" if baselines else ""
    yield Note(f"copy, limit: its speed in % of a copy of as many bytes, and of what the device allows{speedup}")
    if any(e.less_accurate for e in timed):
        yield Note("≈: another project's kernel, less accurate than ours may be; the record says by how much")
    if not any(e.roofline for e in timed):
        yield Note("the limit of this device is not known yet: `assay machine` measures it")
    elif not all(e.roofline.measured for e in timed if e.roofline):
        yield Note("*: by published figures; `assay machine` measures this device")


def _name(timed: Timed) -> Cell:
    from rich.markup import escape

    name = timed.name + " ≈" * bool(timed.evidence.less_accurate)
    mark, colour = _MARKS.get(timed.record.status, ("", ""))
    return Cell((f"[{colour}]{mark}[/]" if mark else "") + escape(name), mark + name)


def _rate(timed: Timed) -> str:
    return f"{timed.evidence.tflops:.3g}" if timed.evidence.tflops is not None else ""


def _memory(timed: Timed) -> str:
    return si(timed.evidence.peak_bytes, "B", 3) if timed.evidence.peak_bytes is not None else ""


def _compiled(timed: Timed) -> str:
    seconds = timed.evidence.compile_seconds
    return f"{seconds:.2f} s" if seconds is not None else ""


def _limit(timed: Timed) -> str:
    roofline = timed.evidence.roofline
    return f"{roofline.share:.0%}" + "*" * (not roofline.measured) if roofline else ""


def _settings(evidence: BenchEvidence) -> Iterator[str]:
    """Yield what was set for a kernel before it was timed: tuned values, prepared weights."""
    if evidence.tuned:
        values = ", ".join(f"{n}={v}" for n, v in (evidence.parameters or {}).items())
        yield f"{values}, from {evidence.tuned}" if values else evidence.tuned
    if evidence.prepared_bytes:
        kept, moved = si(evidence.prepared_bytes, "B", 3), si(evidence.bytes, "B", 3)
        yield f"{evidence.peer}: it keeps {kept}, the op moves {moved}"
