"""Measures the nanoseconds of one dependent load, by pointer chase."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from assay.machine.cpu import cores
from assay.machine.cpu.cores import REPEATS, Missing
from assay.machine.probe import Measured

if TYPE_CHECKING:
    import numpy as np


def _follow(ring, at, steps):  # type: ignore[no-untyped-def]
    for _ in range(steps):
        at = ring[at]
    return at


def ring(bytes_: int, stride: int) -> np.ndarray:
    """Return one random cycle through nodes `stride` bytes apart; each holds the index of the next."""
    import numpy as np

    words, nodes = stride // 8, bytes_ // stride
    order = np.random.default_rng(0).permutation(nodes).astype(np.uint64) * np.uint64(words)
    made = np.zeros(nodes * words, dtype=np.uint64)
    made[order] = np.roll(order, -1)
    return made


def measure(level: int) -> Measured:
    """Measure the latency of a cache level, or of memory if it is 0. The ring for a cache fills at most half of it. The
    ring for memory is as large as an array, and the figure includes TLB misses."""
    import numba
    import numpy as np

    sizes = cores.caches()
    if level and level not in sizes:
        raise Missing(f"this CPU has no cache of level {level}")
    if level == 1:
        bytes_, stride = sizes[1] // 2, 64
    elif level:
        bytes_, stride = min(sizes[level] // 2, max(8 * sizes[level - 1], 1 << 18)), 128
    else:
        bytes_, stride = cores.array_bytes(), 256
    nodes = ring(bytes_, stride)
    follow = numba.njit(_follow, nogil=True)
    steps = max(1_000_000, nodes.size * 8 // stride) if level else 200_000
    at, samples = np.uint64(follow(nodes, np.uint64(0), steps)), []
    for _ in range(REPEATS):
        start = time.perf_counter()
        at = np.uint64(follow(nodes, at, steps))
        samples.append((time.perf_counter() - start) / steps * 1e9)
    return Measured(samples, workload=f"bytes={bytes_},stride={stride}", more={"steps": steps})


def memory() -> Measured:
    return measure(0)
