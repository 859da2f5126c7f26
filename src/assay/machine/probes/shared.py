"""Measures the cost of bad access patterns: bank conflicts in shared memory, strides in device memory."""

from __future__ import annotations

from math import gcd
from statistics import median
from typing import TYPE_CHECKING, Any

from assay.machine.lab import LAUNCHES, QUICK, key
from assay.machine.probe import Measured, Probe
from assay.machine.probes.latency import SHARED_PROOF, chase_shared
from assay.machine.proof import Proof

if TYPE_CHECKING:
    from assay.machine.lab import Lab

STRIDES = tuple(range(1, 33))
WARPS = 32
UNROLL = 4


def _banks(lab: Lab, probe: Probe) -> Measured:
    """Measure, per stride, the cycles of a load by one warp alone, and of each load when 32 warps load at once. The
    figure is the cost of one more lane on a bank with 32 warps."""
    table, clocks = [], []
    for stride in STRIDES:
        alone, _ = chase_shared(lab, probe, stride, 32, launches=QUICK)
        crowded, clock = chase_shared(lab, probe, stride, 32 * WARPS, steps=2048, launches=QUICK)
        clocks += clock
        row = {"stride": stride, "ways": gcd(stride, 32), "latency": median(alone), "cycles": median(crowded) / WARPS}
        table.append(row)
    none = median(r["cycles"] for r in table if r["ways"] == 1)
    samples = [(r["cycles"] - none) / (r["ways"] - 1) for r in table if r["ways"] > 1]
    return Measured(samples, clocks, "strides=1..32", table)


def _strides(lab: Lab, probe: Probe) -> Measured:
    """Measure useful bytes per second by the distance between lanes; the figure is at 8 words, one word of each
    sector."""
    words = min(1 << 30, lab.memory // 8) // 4
    x = lab.floats(words * 4)
    kernel = lab.kernel(probe, f"strided<{UNROLL}>")
    grid, threads = lab.sms * 4, 512
    sweep = grid * threads * UNROLL
    table, figure = [], None
    for stride in STRIDES:
        n = words // stride // sweep * sweep

        def go(clocks: Any, n: int = n, stride: int = stride) -> None:
            kernel(grid, threads, x, n, stride, key(), lab.sink, clocks)

        seconds, clocks = lab.time(go, LAUNCHES if stride == 8 else QUICK, warm_up=1)
        samples = [4.0 * n / s for s in seconds]
        table.append({"stride": stride, "value": median(samples)})
        if stride == 8:
            figure = (samples, clocks)
    assert figure is not None
    return Measured(*figure, f"bytes={words * 4},stride=8", table)


PROBES = (
    Probe(
        "shared.conflict",
        "patterns",
        "cycles",
        "bank conflicts: strides of 1 to 32 words between lanes",
        "latency.cu",
        {"chase_shared": SHARED_PROOF},
        _banks,
    ),
    Probe(
        "dram.strided",
        "patterns",
        "B/s",
        "useful bytes of 4-byte loads, 1 to 32 words apart",
        "latency.cu",
        {f"strided<{UNROLL}>": Proof({"LDG.E.CONSTANT": UNROLL})},
        _strides,
    ),
)
