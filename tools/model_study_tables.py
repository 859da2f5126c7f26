"""The tables of docs/model-results.md on `model compile`, `attention` and `train`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.models.studies.train.evidence import TrainEvidence
from assay.record import Record
from assay.report import model_compile
from assay.report.infer_tables import spread
from assay.report.rows import parts
from assay.report.table import Column, Table, to_markdown
from assay.units import share, si, times


def compiled(records: Sequence[Record]) -> list[str]:
    return to_markdown(model_compile.states([state for state in model_compile.read(records) if state.worth]))


def attended(records: Sequence[Record]) -> list[str]:
    """Return the table of attention records from when it was a separate study with its own evidence."""

    def sizes(record: Record) -> dict[str, str]:
        return parts(record.workload)

    columns: list[Column[Record]] = [
        Column("dtype", lambda r: sizes(r)["dtype"], left=True),
        Column("mask", lambda r: "causal" if sizes(r)["causal"] == "1" else "", left=True),
        Column("seq", lambda r: sizes(r)["seq"]),
        Column("arm", lambda r: r.evidence["arm"] + ("¹" if r.evidence.get("recognised") else ""), left=True),
        Column("time", lambda r: si(r.median, "s")),
        Column("95 %", lambda r: f"±{spread(r)}"),
        Column("gain", lambda r: times(r.evidence["speedup"]["median"]) if "speedup" in r.evidence else ""),
        Column("memory", lambda r: si(r.evidence.get("peak_bytes"), "B", 3)),
        Column("rate", lambda r: si(r.evidence["tflops"] * 1e12, "FLOP/s", 3)),
        Column("error", lambda r: share(r.evidence["errors"]["share"])),
    ]
    note = "¹ the compiler recognised the formula and put PyTorch's fused operator in its place.\n"
    seen = any(r.evidence.get("recognised") for r in records)
    return [*to_markdown(Table("", columns, [r for r in records if r.median])), *([note] if seen else [])]


@dataclass(frozen=True)
class Run:
    """A training that ended, and how far it leaves the band of PyTorch's seeds."""

    record: Record
    evidence: TrainEvidence
    again: bool
    """Whether it is PyTorch's second run of a seed."""
    outside: str


def trained(records: Sequence[Record]) -> list[str]:
    """Return the table of trainings. A run that was compared with PyTorch's seeds shows how far it leaves their
    envelope. So do, as a reference, PyTorch's second run of the first seed, and each seed compared with the others."""
    ended = [(r, e) for r in records if (e := TrainEvidence.of(r)).test]
    envelope = next((e.envelope for _, e in ended if e.envelope), None)
    plain = {r.workload: e for r, e in reversed(ended) if not e.config.swap}  # the first run of each seed
    runs = []
    for record, evidence in ended:
        spans = plain.get(record.workload) is evidence  # one of those that span the envelope
        band = _band([e for workload, e in plain.items() if workload != record.workload]) if spans else envelope
        outside = _outside(evidence, band) + "*" * spans if envelope and band else ""
        runs.append(Run(record, evidence, not spans and not evidence.config.swap, outside))
    columns: list[Column[Run]] = [
        Column("model", lambda run: run.record.kernel, left=True),
        Column("kernels", _kernels, left=True),
        Column("seed", lambda run: str(run.evidence.config.seed)),
        Column("data", lambda run: run.evidence.data.name if run.evidence.data else "", left=True),
        Column("epochs", lambda run: str(len(run.evidence.epochs))),
        Column("test accuracy", lambda run: share(run.evidence.test.value, 2) if run.evidence.test else ""),
        Column("leaves the band by", lambda run: run.outside),
        Column("one epoch", lambda run: si(s, "s", 3) if (s := run.evidence.seconds_per_epoch) else ""),
        Column("memory", lambda run: si(m.bytes, "B", 3) if (m := run.evidence.peak_memory) else ""),
    ]
    lines = to_markdown(Table("", columns, runs))
    if envelope is None:
        return lines
    text = (
        "\\* the band of the other seeds. PyTorch's two runs of seed 0 lie up to "
        f"{envelope['same_seed_apart']:.4f} apart: a run with kernels passes if it leaves the band by no more "
        "than that.\n"
    )
    return [*lines, text]


def _kernels(run: Run) -> str:
    swap = ", ".join(f"{k}={v}" for k, v in run.evidence.config.swap.items()) or "torch"
    return swap.replace("|", "") + ", again" * run.again


def _band(others: Sequence[TrainEvidence]) -> dict[str, Any]:
    """Return the band that some seeds span."""
    losses = [[loss for _, loss in evidence.curve] for evidence in others]
    return {name: [of(at) for at in zip(*losses, strict=True)] for name, of in (("low", min), ("high", max))}


def _outside(evidence: TrainEvidence, envelope: dict[str, Any]) -> str:
    """Return the largest distance from the envelope, in units of loss, and the number of points outside."""
    points = zip(envelope["low"], evidence.curve, envelope["high"], strict=True)
    off = [max(low - loss, loss - high, 0.0) for low, (_, loss), high in points]
    return f"{max(off):.4f} ({sum(o > 0 for o in off)} of {len(off)} points)"
