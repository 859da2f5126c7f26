"""The report of `assay model infer`: its tables in their order, and the lines between them, which say what follows from
the figures, how to read them, and what was left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from assay.models.studies.infer.evidence import Boundary, InferEvidence
from assay.record import Record, Status
from assay.report.infer_runs import Run, runs
from assay.report.infer_tables import (
    One,
    by_pytorch,
    kept_out,
    layers,
    over_batches,
    read,
    shown_batch,
    signed,
    sites,
    variants,
)
from assay.report.table import Note, Table
from assay.units import count, si

_HIDDEN = 0.6
"""A GPU that is busy for less than this share of an eager pass waits for the host, which hides what kernels save."""
_STEADY = 1.25
"""Torch by itself and next to a variant, in two processes, may differ by up to this factor without a note."""
_LONGEST = 12
"""The most layers that a terminal shows individually."""


def parts(records: Sequence[Record]) -> Iterator[Table[Any] | Note]:
    """Yield, for each run of a model in one format: the variants at one batch size, latency over batches, layers,
    sites, and what was left out."""
    for run in runs(read(records)):
        timed = [one for one in run.ones if one.record.median]
        if timed:
            batch = shown_batch(timed)
            here = [one for one in timed if one.evidence.batch == batch]
            yield variants(here, f"{run.name}, batch {batch}  ({_where(here[0])})")
            yield from (Note(text, loud=True) for text in conclusions(here))
            yield from map(Note, _notes(here))
            if len({one.evidence.batch for one in timed}) > 1:
                yield over_batches(timed, f"{run.name}, latency by batch")
            if any(one.evidence.layers for one in here):
                yield layers(here, f"{run.name}, batch {batch}, by layer", _LONGEST)
            for one in (one for one in here if one.evidence.sites):
                kernels = ", ".join(dict.fromkeys(row.kernel for row in one.evidence.sites or ()))
                yield sites([one], f"{one.evidence.variant}, batch {batch}: {kernels}")
                if (left := by_pytorch([one], f"{one.evidence.variant}, batch {batch}: computed by PyTorch")).rows:
                    yield left
                yield from map(Note, _beside(one.evidence))
        yield from map(Note, left_out(run.ones))
        yield from map(Note, _older(run))


def _where(one: One) -> str:
    evidence = one.evidence
    place = count(evidence.threads, "thread") if evidence.threads else one.record.provenance.get("gpu") or ""
    weights, size = (evidence.weights or {}).get("from"), (evidence.model_bytes or {}).get("torch")
    return f"{place}; {weights} weights, {count(evidence.parameter_count or 0, 'parameter')}, {si(size, 'B', 3)}"


def _older(run: Run) -> Iterator[str]:
    """Yield a note on what only an older run of the same kernels measured."""
    arms: dict[str, set[int]] = {}
    for one in run.older:
        arms.setdefault(one.evidence.arm, set()).add(one.evidence.batch)
    if arms:
        where = "; ".join(f"{arm} {', '.join(map(str, sorted(batches)))}" for arm, batches in arms.items())
        yield f"only the newest run of these kernels is shown; an older one also measured the batch sizes {where}"


def _notes(ones: Sequence[One]) -> Iterator[str]:
    """Explain how to read the tables, and what the figures suggest."""
    if any(one.evidence.predicted for one in ones):
        yield (
            "arm: how the model is run: eager, compiled by torch.compile, graphed into a CUDA graph. gain, saves: "
            "against torch in the same arm, round by round. alone: what a pass would save by the times that bench "
            "takes of each kernel by itself, caches cold or hot. in the model: the same, by its time in a profiled pass"
        )
    yield from _slower_host(ones)
    eager = [(one.evidence.busy or {}).get("torch", 1.0) for one in ones if one.evidence.arm == "eager"]
    if idle := [busy for busy in eager if busy < _HIDDEN]:
        rest = "the rest is launching, and hides what kernels save"
        yield f"eager torch keeps the GPU busy {idle[0]:.0%} of a pass: {rest}"


def conclusions(ones: Sequence[One]) -> Iterator[str]:
    """Yield one line per variant: faster, slower, no different, or wrong."""
    arms = len({one.evidence.arm for one in ones}) > 1
    found: dict[str, list[tuple[bool, str]]] = {}
    for one in (one for one in ones if one.evidence.speedup):
        speedup = one.evidence.speedup
        assert speedup is not None
        low, high = speedup.interval
        where = f" ({one.evidence.arm})" * arms
        if one.record.status is Status.FAIL:
            said = False, f"wrong{where}"
        elif low > 1:
            said = True, f"{speedup.median:.2f} × faster{where}"
        elif high < 1:
            said = False, f"{1 / speedup.median:.2f} × slower{where}"
        else:
            said = False, f"no different within the noise{where}"
        found.setdefault(one.evidence.variant, []).append(said)
    for variant, said_of in found.items():
        worse = any("slower" in text or "wrong" in text for _, text in said_of)
        advice = ": leave it out" if worse and not any(better for better, _ in said_of) else ""
        yield f"{variant} is {', '.join(text for _, text in said_of)} here{advice}"


def _slower_host(ones: Sequence[One]) -> Iterator[str]:
    """Yield a note if torch's latencies in two processes differ too much to compare variants by them."""
    alone = {o.evidence.arm: o.record.median for o in ones if not o.evidence.rules}
    beside = [
        (o.evidence.latency["torch"].median / own, o.evidence.latency["torch"].median, own, o.evidence)
        for o in ones
        if o.evidence.latency and (own := alone.get(o.evidence.arm))
    ]
    if not beside:
        return
    factor, took, own, evidence = max(beside, key=lambda timed: abs(math.log(timed[0])))
    if not 1 / _STEADY < factor < _STEADY:
        yield (
            f"the host was not steady: torch, {evidence.arm}, took {si(took, 's', 3)} beside {evidence.variant} and "
            f"{si(own, 's', 3)} by itself. Compare gains, not latencies of two variants"
        )


def _beside(evidence: InferEvidence) -> Iterator[str]:
    """Yield what the table of sites leaves out: why kernels alone predict nothing, what a call costs, and which sites
    were not swapped."""
    rows = evidence.sites or []
    if evidence.predicted and evidence.predicted.why:
        yield f"no gain is predicted from the kernels alone: {evidence.predicted.why}"
    if evidence.unprofiled:
        yield f"no time in the model: {evidence.unprofiled}"
    if exceeding := dict.fromkeys(row.site for row in rows if row.exceeds):
        yield (
            f"? {', '.join(exceeding)}: the time in the model exceeds the whole pass, which is timed without the "
            "profiler: the host was not steady, or the profiler takes most of so short a time. Nothing follows from it"
        )
    if copied := dict.fromkeys(row.kernel.partition("/")[0] for row in rows if row.alone.copied):
        yield f"PyTorch's {', '.join(copied)} has no out=: alone, its time holds a copy that no model makes"
    costs = {k: c for k, c in (evidence.boundary or {}).items() if isinstance(c, Boundary) and c.site is not None}
    if costs:
        calls = Counter[str]()
        for row in rows:
            calls[row.kernel] += row.calls
        whole = signed(sum(((c.site or 0.0) - (c.direct or 0.0)) * calls[k] for k, c in costs.items()))
        each = "; ".join(f"{k} {_beyond(c)}" for k, c in costs.items())
        yield f"what a swapped call costs beyond the kernel's own, {whole} a pass: {each}"
    if evidence.packed:
        of = evidence.packed.weights
        sizes = f"{si(of.before, 'B', 3)} → {si(of.after, 'B', 3)}"
        yield f"packed weights: {sizes}, {of.saved:.2%} saved; in theory {of.theory:.2%}"
    if left := Counter(site.op for site in evidence.swap or () if site.state == "left" and not kept_out(site)):
        yield "left as they are: " + ", ".join(f"{op} ×{n}" for op, n in left.items())
    profile = (evidence.profile or {}).get("variant")
    if profile and profile.unattributed and profile.total:
        yield f"{profile.unattributed / profile.total:.1%} of the kernels' time belongs to no module"


def _beyond(cost: Boundary) -> str:
    """Describe what each way costs beyond calling the kernel directly; the oldest records have fewer ways."""
    ways = ((cost.site, ""), (cost.operator, " through torch.library"), (cost.training, " recorded for a gradient"))
    words = [f"{signed(way - (cost.direct or 0.0))}{text}" for way, text in ways if way is not None]
    return ", ".join(words) + (f", which takes {si(cost.gradient, 's', 3)}" if cost.gradient else "")


def left_out(ones: Sequence[One]) -> Iterator[str]:
    """Yield the skipped variants, arms and batches, each reason once, and interpreted ones with their verdict."""
    places: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in (one for one in ones if one.record.status is Status.SKIPPED):
        arms = places.setdefault((one.evidence.variant, one.record.reason), {})
        if one.evidence.arm:
            arms.setdefault(one.evidence.arm, []).append(str(one.evidence.batch))
    for (variant, reason), arms in places.items():
        where = "".join(f", {arm} {', '.join(batches)}" for arm, batches in arms.items())
        yield f"– {variant}{where}: {reason}"
    marks = {Status.PASS: "✓", Status.INCONCLUSIVE: "?"}
    for one in (one for one in ones if one.record.status in marks and not one.record.median):
        yield f"{marks[one.record.status]} {one.evidence.variant} at batch {one.evidence.batch}: {one.record.reason}"
