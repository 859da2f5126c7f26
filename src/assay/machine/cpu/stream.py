"""Measures bandwidth as STREAM counts it, in bytes per second, on all threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from assay.machine.cpu import cores
from assay.machine.cpu.cores import REPEATS, SEVERAL
from assay.machine.probe import Measured

if TYPE_CHECKING:
    import numpy as np


def _read(a, b, c, s):  # type: ignore[no-untyped-def]
    total = a[0] * 0
    for i in range(a.size):
        total += a[i]
    return total


def _write(a, b, c, s):  # type: ignore[no-untyped-def]
    for i in range(a.size):
        a[i] = s
    return s


def _copy(a, b, c, s):  # type: ignore[no-untyped-def]
    for i in range(a.size):
        a[i] = b[i]
    return s


def _triad(a, b, c, s):  # type: ignore[no-untyped-def]
    for i in range(a.size):
        a[i] = b[i] + s * c[i]
    return s


STREAMS: dict[str, tuple[Callable[..., Any], int]] = {
    "read": (_read, 1),
    "write": (_write, 1),
    "copy": (_copy, 2),
    "triad": (_triad, 3),
}
"""Each loop, and how many arrays it moves. As in STREAM, the read that a store may cause is not counted."""


@cache
def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays, filled by the threads that will use them, so that each page is local to its thread."""
    import numpy as np

    made = tuple(np.empty(cores.array_bytes() // 8) for _ in range(3))
    cores.side_by_side(lambda part: [a[part].fill(i + 0.5) for i, a in enumerate(made)], cores.parts(made[0].size))
    return made  # type: ignore[return-value]


def measure(name: str) -> Measured:
    import numba

    function, moved = STREAMS[name]
    a, b, c = arrays()
    loop = numba.njit(function, nogil=True, fastmath=True)
    loop(a[:8], b[:8], c[:8], 0.5)  # compiles
    seconds = [
        cores.side_by_side(lambda part: loop(a[part], b[part], c[part], 0.5), cores.parts(a.size))
        for _ in range(REPEATS + 1)
    ]
    samples = [moved * a.nbytes / s for s in seconds[1:]]
    last = max(cores.caches().values())
    enough = a.nbytes >= SEVERAL * last - (1 << 20)
    note = {} if enough else {"note": f"the arrays are only {a.nbytes / last:.1f} times the last cache"}
    return Measured(samples, workload=f"bytes={moved * a.nbytes}", more={"threads": cores.threads(), **note})
