"""From times to a verdict: what a time must not be, in this order: unsteady, impossible."""

from __future__ import annotations

from assay.bench.evidence import BenchEvidence, Floor
from assay.bench.limit import Limit
from assay.bench.statistics import Estimate
from assay.record import Status

CLOSE = 0.005
"""Half the interval of every cold median, as a share of it, at which sampling ends."""
ENOUGH = 20
"""Rounds from which a wide interval can be the kernel's doing: it then leaves out the five slowest, whatever held those
up. Fewer say only that the machine was busy."""
_UNLIKE = 4.0
"""Times the copy's own interval, both as shares of their medians, from which an interval is the kernel's doing."""


def too_wide(cold: Estimate) -> bool:
    """The interval is wider than the value itself, taken at its lower end: one end is more than twice the other, and
    such a time says nothing."""
    return cold.interval[1] > 2 * cold.interval[0]


def verdict(
    cold: Estimate,
    own: Estimate,
    copy: Estimate | None,
    evidence: BenchEvidence,
    known: Limit | None,
    floor: Floor | None,
) -> tuple[Status, str, str]:
    """Status, detector (empty unless it fails) and reason. `own`: what the kernel itself took of that time. `copy`:
    timed in the same rounds."""
    shown, excuse = f"{cold.median * 1e6:.4g} µs", "it does not do the work, or the op's cost is wrong"
    if known and known.floor and cold.interval[1] < known.floor:
        why = f"{shown} is less than the {known.floor * 1e6:.4g} µs that {known.model} needs: {excuse}"
        return Status.FAIL, "floor", f"floor: {why}"
    if floor and cold.interval[1] < floor.seconds:
        speed = f"{floor.gbps:.4g} GB/s, the fastest {floor.by} in the same rounds"
        why = f"{shown} is less than the {floor.seconds * 1e6:.4g} µs that its bytes need at {speed}: {excuse}"
        return Status.FAIL, "floor", f"floor: {why}"
    if too_wide(cold):
        wide = f"the interval, {cold.interval[0] * 1e6:.4g} to {cold.interval[1] * 1e6:.4g} µs, is as wide as its value"
        rounds = evidence.rounds or 0
        if copy and rounds >= ENOUGH and too_wide(own) and own.spread > _UNLIKE * copy.spread:
            steady = f"the copy timed in the same rounds stays within ± {copy.spread:.1%}"
            return Status.FAIL, "unsteady", f"unsteady: {wide}, and {steady}"
        beside = f", the copy's is ± {copy.spread:.0%}" if copy else ""
        return Status.INCONCLUSIVE, "", f"{wide} after {rounds} rounds{beside}: time it on a quiet machine"
    parts = [f"{evidence.gbps:.4g} GB/s"]
    if evidence.speedup:
        parts.append(f"{evidence.speedup.median:.3g}× {evidence.baseline}")
    if evidence.roofline:
        parts.append(f"{evidence.roofline.share:.0%} of the limit")
    if not evidence.converged:
        parts.append(f"± {cold.spread:.1%}")
    return Status.PASS, "", ", ".join(parts)
