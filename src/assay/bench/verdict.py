"""Turns times into a verdict: a time must be neither impossibly short nor unsteady."""

from assay.bench.evidence import BenchEvidence
from assay.bench.statistics import Estimate
from assay.record import Status

CLOSE = 0.005
"""Sampling ends when, for every kernel, half the interval of the cold median is at most this share of the median."""
ENOUGH = 20
"""From this many rounds on, a wide interval can be attributed to the kernel: the interval then leaves out the five
slowest rounds, whatever delayed them. With fewer rounds the machine may just have been busy."""
_UNLIKE = 4.0
"""An interval at least this many times as wide as the copy's, relative to their medians, is attributed to the
kernel."""


def too_wide(cold: Estimate) -> bool:
    """Return whether the upper end of the interval is more than twice the lower; such a time is meaningless."""
    return cold.interval[1] > 2 * cold.interval[0]


def verdict(cold: Estimate, own: Estimate, copy: Estimate | None, evidence: BenchEvidence) -> tuple[Status, str, str]:
    """Return status, detector (empty unless it fails) and reason. `own` is the part of the time that the kernel itself
    used, `copy` the copy timed in the same rounds."""
    roofline, floor = evidence.roofline, evidence.floor
    shown, excuse = f"{cold.median * 1e6:.4g} µs", "it does not do the work, or the op's cost is wrong"
    if roofline and roofline.floor and cold.interval[1] < roofline.floor:
        why = f"{shown} is less than the {roofline.floor * 1e6:.4g} µs that {roofline.model} needs: {excuse}"
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
    if roofline:
        parts.append(f"{roofline.share:.0%} of the limit")
    if evidence.less_accurate:
        parts.append("less accurate")
    if not evidence.converged:
        parts.append(f"± {cold.spread:.1%}")
    return Status.PASS, "", ", ".join(parts)
