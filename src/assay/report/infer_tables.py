"""The tables of `assay model infer`: the variants at one batch size, all batch sizes, every layer and every site. The
terminal, the docs and the page draw the same tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay import provenance
from assay.bench.statistics import Estimate
from assay.catalog import library
from assay.models.studies.infer.evidence import Gain, InferEvidence, Row
from assay.models.studies.infer.joined import Repeated, alike, by_layer, repeated
from assay.models.swap.report import ASKED, NO_RULE, PART_OF, Site, State
from assay.record import Record, Status
from assay.report.table import Cell, Column, Table
from assay.units import NOTHING, share, si, times

Epochs = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]
"""Seconds of a training epoch, by model and kernels."""


@dataclass(frozen=True)
class One:
    """A record of `model infer`, with its evidence."""

    record: Record
    evidence: InferEvidence


def read(records: Iterable[Record]) -> list[One]:
    """Return the records of `model infer`, with their evidence."""
    studied = (r for r in records if r.verb == "model" and r.evidence.get("study") == "infer")
    return [One(record, InferEvidence.of(record)) for record in studied]


def by_model(ones: Iterable[One]) -> dict[tuple[str, str], list[One]]:
    """Group records by model and format."""
    groups: dict[tuple[str, str], list[One]] = {}
    for one in ones:
        groups.setdefault((one.record.kernel, one.evidence.dtype), []).append(one)
    return groups


def shown_batch(timed: Sequence[One]) -> int:
    """Return the largest batch at which kernels were also timed alone, else the largest one that most variants were run
    at."""
    both = [one for one in timed if one.evidence.predicted and one.evidence.predicted.cold]
    ran = Counter(one.evidence.batch for one in both or timed)
    return max(batch for batch, count in ran.items() if count == max(ran.values()))


# Variants


def variants(ones: Sequence[One], title: str = "", epochs: Epochs | None = None) -> Table[One]:
    """Return the table of variants. `epochs` are those of trainings recorded along with these records."""
    evidence = [one.evidence for one in ones]
    busy = "busy" * any(e.busy for e in evidence)
    accuracy = "accuracy" * any(e.accuracy is not None for e in evidence)
    epoch = "epoch" * any(e.training and e.training.seconds_per_epoch for e in evidence)
    columns: list[Column[One]] = [
        Column("variant", _name, left=True),
        Column("arm", lambda o: o.evidence.arm, left=True),
        Column("latency", lambda o: Cell(si(o.record.median, "s", 3), si(o.record.median, "s"))),
        Column("±", lambda o: Cell(spread(o.record), f"±{spread(o.record)}"), page="95 %"),
        Column("", lambda o: _torch(o.evidence), page="torch beside it"),
        Column("per s", lambda o: f"{o.evidence.throughput:,.0f}", page="per second"),
        Column("gain", lambda o: gain(o.evidence.speedup)),
        Column("saves", lambda o: saving(o.evidence.saving)),
        Column("alone,\ncold", lambda o: _promised(o.evidence, "cold")),
        Column("alone,\nhot", lambda o: _promised(o.evidence, "hot")),
        Column("in the\nmodel", lambda o: _promised(o.evidence, "in_model")),
        Column("", lambda o: _busy(o.evidence), page="busy"),
        Column("memory", lambda o: _bytes(o.evidence.peak_bytes, o.evidence)),
        Column("", lambda o: _bytes(o.evidence.model_bytes, o.evidence), page="weights"),
        Column("error", lambda o: _error(o.evidence)),
        Column(busy, lambda o: _busy(o.evidence), page=""),
        Column(accuracy, lambda o: _accuracy(o.evidence), page="accuracy"),
        Column(epoch, lambda o: _epoch(o, epochs or {}), page="epoch"),
    ]
    return Table(title, columns, ones, keep=2, group=lambda one: one.evidence.variant)


def spread(record: Record) -> str:
    """Return half the interval, as a share of the median."""
    assert record.median and record.interval
    return f"{(record.interval[1] - record.interval[0]) / 2 / record.median:.1%}"


def _name(one: One) -> Cell:
    name, failed = one.evidence.variant, one.record.status is Status.FAIL
    return Cell("[red]✗[/] " * failed + name, name + "†" * stale(one.record) + " **fail**" * failed)


def stale(record: Record) -> bool:
    """Return whether a kernel's source has changed since the record."""
    kernels = {k.name: k for k in library.kernels()}
    for name, kept in (record.source.get("kernels") or {}).items():
        kernel = kernels.get(name)
        if kernel is None or provenance.source_of(kernel.file, kernel.line)["hash"] != kept:
            return True
    return False


def _torch(evidence: InferEvidence) -> str:
    return si(evidence.latency["torch"].median, "s") if evidence.rules and evidence.latency else ""


def gain(speedup: Estimate | None) -> Cell:
    """Format a speedup: green or bold if the interval lies above 1, red or bold if it lies below, ~ if it contains
    1."""
    if speedup is None:
        return Cell("", "")
    low, high = speedup.interval
    page = f"{times(speedup.median)} ({low:.3f}–{high:.3f})"
    return Cell(_toned(f"{speedup.median:.3f}×", low > 1, high < 1), f"**{page}**" if low > 1 or high < 1 else page)


def saving(saved: Estimate | None) -> Cell:
    if saved is None:
        return Cell("", "")
    text, (low, high) = signed(saved.median), saved.interval
    return Cell(_toned(text, low > 0, high < 0), text)


def _toned(text: str, better: bool, worse: bool) -> str:
    return f"[green]{text}[/]" if better else f"[red]{text}[/]" if worse else f"~{text}"


def _promised(evidence: InferEvidence, kind: str) -> Cell:
    promised: Gain | None = getattr(evidence.predicted, kind, None)
    if promised is None:
        return Cell("", "")
    text = signed(promised.saving)
    return Cell(text, text if promised.saving else "")


def signed(seconds: float) -> str:
    """Format `+12.3 µs` saved or `−4.5 µs` lost."""
    return ("−" if seconds < 0 else "+") + si(abs(seconds), "s", 3)


def _busy(evidence: InferEvidence) -> Cell:
    busy = (evidence.busy or {}).get(evidence.whose)
    return Cell("" if busy is None else f"{busy:.0%}", share(busy) if busy else "")


def _bytes(held: Mapping[str, int] | None, evidence: InferEvidence) -> str:
    return si((held or {}).get(evidence.whose), "B", 3)


def _error(evidence: InferEvidence) -> Cell:
    """Format the error as a share of the tolerance or, for packed weights, as the signal-to-noise ratio."""
    outputs = evidence.outputs
    assert outputs is not None
    if evidence.packed:
        noise = outputs.compared.sqnr if outputs.compared else None
        text = f"{noise:.1f} dB" if noise else "none"
        return Cell(text, text)
    off = outputs.share
    return Cell(f"{off:.0%}" if off < 10 else f"[red]{off:.3g}×[/]", share(off))


def _accuracy(evidence: InferEvidence) -> Cell:
    value = evidence.accuracy
    return Cell("", "") if value is None else Cell(f"{value:.2%}", share(value, 2))


def _epoch(one: One, epochs: Epochs) -> Cell:
    own = one.evidence.training.seconds_per_epoch if one.evidence.training else None
    known = own or epochs.get((one.record.kernel, tuple(sorted(one.evidence.rules.items()))))
    return Cell(si(own, "s", 3), si(known, "s", 3) if known else "")


# Over batches


def over_batches(ones: Sequence[One], title: str = "") -> Table[Any]:
    ways: dict[tuple[str, str], dict[int, One]] = {}
    for one in ones:
        ways.setdefault((one.evidence.variant, one.evidence.arm), {})[one.evidence.batch] = one
    columns: list[Column[Any]] = [
        Column("variant", lambda row: row[0][0], left=True),
        Column("arm", lambda row: row[0][1], left=True),
    ]
    for batch in sorted({one.evidence.batch for one in ones}):
        columns.append(Column(str(batch), lambda row, batch=batch: _latency(row[1].get(batch))))  # type: ignore[misc]
    return Table(title, columns, list(ways.items()), keep=2, group=lambda row: str(row[0][0]))


def _latency(one: One | None) -> Cell:
    if one is None:
        return Cell("", NOTHING)
    took, speedup = si(one.record.median, "s", 3), one.evidence.speedup
    return Cell(f"{took} {gain(speedup).terminal}".strip(), f"{took} {times(speedup.median)}" if speedup else took)


# Layers


def layers(ones: Sequence[One], title: str = "", longest: int = 0) -> Table[Repeated]:
    """Return the table of layers: where a pass spends its time and how that changes, from the profiler's figures of the
    eager arm. Both figures of a variant, and the share, are of the variant's own process, as in the table of sites:
    times of two processes cannot be compared. With `longest`, that many layers are shown individually and the others
    summed."""
    own = {one.evidence.variant: one.evidence.layers for one in ones if one.evidence.layers}
    compared = [one.evidence.variant for one in ones if one.evidence.layers and one.evidence.rules]
    shown = compared or list(own)

    def plain(row: Repeated) -> float:
        """The layer's time in the plain model, in the process of the first variant shown."""
        return (row.torch if compared else row.seconds).get(next(iter(shown), ""), 0.0)

    rows = sorted(by_layer(own), key=plain, reverse=True)
    whole = sum(map(plain, rows))
    if longest and len(rows) > longest:
        rest = rows[longest:]
        sums = [{v: sum(getattr(row, of).get(v, 0.0) for row in rest) for v in own} for of in ("seconds", "torch")]
        rows = [*rows[:longest], Repeated(f"{len(rest)} others", 1, *sums)]

    def time(name: str) -> Column[Repeated]:
        def cell(row: Repeated) -> Cell | str:
            seconds = row.seconds.get(name) or 0.0
            if name in compared:
                return change(row.torch.get(name, 0.0), seconds)
            return si(seconds, "s", 3) if seconds else ""

        return Column(f"{name}, from torch" if name in compared else name, cell)

    columns: list[Column[Repeated]] = [
        Column("layer", lambda row: row.layer + (f" ×{row.modules}" if row.modules > 1 else ""), left=True),
        Column("share", lambda row: f"{plain(row) / whole if whole else 0.0:.0%}", page=""),
        *map(time, shown),
    ]
    return Table(title, columns, rows, keep=2)


# Sites


def sites(ones: Sequence[One], title: str = "") -> Table[Any]:
    rows = [(one.evidence.variant, row) for one in ones for row in alike(one.evidence.sites or [])]
    columns: list[Column[Any]] = [
        Column("", lambda at: at[0], page="variant", left=True),
        Column("site", lambda at: at[1].site, left=True),
        Column("", lambda at: at[1].kernel, page="kernel", left=True),
        Column("", lambda at: "; ".join(at[1].workloads), page="workload", left=True),
        Column("calls", lambda at: str(at[1].calls)),
        Column("alone, cold", lambda at: _alone(at[1], "cold")),
        Column("alone, hot", lambda at: _alone(at[1], "hot")),
        Column("in the model", lambda at: _inside(at[1])),
        Column("share", lambda at: _share(at[1].share)),
        Column("workload", lambda at: "; ".join(map(_shape, at[1].workloads)), page="", left=True, fold=True),
    ]
    return Table(title, columns, rows)


@dataclass(frozen=True)
class _ByPyTorch:
    """Sites of one kernel at which PyTorch computed some or all calls for one reason."""

    variant: str
    op: str
    kernel: str
    why: str
    paths: dict[str, None] = field(default_factory=dict)
    """Repeated layers are one path."""
    calls: list[tuple[int, int]] = field(default_factory=list)
    """For each site, the calls that PyTorch computed, of all; none if the site was never swapped."""


def by_pytorch(ones: Sequence[One], title: str = "") -> Table[_ByPyTorch]:
    """Return the table of sites that a rule names and PyTorch computed all the same, at least in some calls, with the
    reason."""
    rows: dict[tuple[str, ...], _ByPyTorch] = {}
    for one in ones:
        for site in one.evidence.swap or ():
            whole = site.calls + sum(site.fallbacks.values())
            reasons: dict[str, int | None] = dict(site.fallbacks) or ({site.why: None} if kept_out(site) else {})
            for why, fell in reasons.items():
                key = one.evidence.variant, site.op, site.kernel, why
                row = rows.setdefault(key, _ByPyTorch(*key))
                row.paths[repeated(site.path) or "(the model)"] = None
                if fell is not None:
                    row.calls.append((fell, whole))
    columns: list[Column[_ByPyTorch]] = [
        Column("", lambda row: row.variant, page="variant", left=True),
        Column("site", lambda row: ", ".join(row.paths), left=True),
        Column("op", lambda row: row.op, left=True),
        Column("kernel", lambda row: row.kernel, left=True),
        Column("by PyTorch", lambda row: _fell(row.calls)),
        Column("why", lambda row: _why(row.why), left=True, fold=True),
    ]
    return Table(title, columns, list(rows.values()))


def kept_out(site: Site) -> bool:
    """Return whether a rule names the site, and the kernel cannot compute it."""
    asked = site.why in (NO_RULE, ASKED) or site.why.startswith(PART_OF)
    return site.state is State.LEFT and not asked


def _why(text: str) -> Cell:
    from rich.markup import escape

    return Cell(escape(text), text)


def _fell(calls: Sequence[tuple[int, int]]) -> str:
    fell, whole = (sum(counts) for counts in zip(*calls, strict=True)) if calls else (0, 0)
    return f"{fell / whole:.0%} of calls" if 0 < fell < whole else "every call"


def _alone(row: Row, kind: str) -> Cell:
    if not row.alone.torch or not row.alone.kernel:
        return Cell("", "")
    return change(getattr(row.alone.torch, kind), getattr(row.alone.kernel, kind))


def _inside(row: Row) -> Cell:
    if row.in_model is None:
        return Cell("", "")
    cell = change(row.in_model.torch, row.in_model.kernel)
    if row.exceeds:
        return Cell(f"{cell.terminal} ?", f"{cell.page} ?")
    return cell if row.in_model.kernel else Cell(cell.terminal, "")


def _share(value: float | None) -> Cell:
    return Cell("", "") if value is None else Cell(f"{value:.0%}", share(value))


def change(torch: float, kernel: float) -> Cell:
    """Format `12.3 → 8.10 µs`: PyTorch's time, then the kernel's, in one unit; green if the kernel takes less, else
    red."""
    exponent = max(-9, 3 * ((len(f"{max(torch, kernel) * 1e9:.0f}") - 1) // 3) - 9)
    unit = {-9: "ns", -6: "µs", -3: "ms"}.get(exponent, "s")
    scale = 10.0**exponent if unit != "s" else 1.0
    colour = "green" if kernel < torch else "red"
    before, after = (f"{seconds / scale:#.3g}".rstrip(".") for seconds in (torch, kernel))
    return Cell(f"{before} → [{colour}]{after}[/] {unit}", f"{si(torch, 's', 3)} → {si(kernel, 's', 3)}")


def _shape(workload: str) -> str:
    return " ".join(part for part in workload.split(",") if not part.startswith("dtype="))
