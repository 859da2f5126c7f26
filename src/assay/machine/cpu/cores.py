"""The CPU's threads and caches, and a function that runs work on all threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from assay.errors import AssayError

REPEATS = 7
SEVERAL = 3
"""The size of an array as a multiple of the last-level cache."""
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_ASSUMED = {1: 32 << 10, 2: 1 << 20, 3: 32 << 20}
"""Cache sizes to use if the system does not report them."""


class Missing(AssayError):
    """Raised if this CPU does not have what a probe measures."""


def threads() -> int:
    return len(os.sched_getaffinity(0))


def facts() -> dict[str, float]:
    """Return the properties that are not measured: threads and cache sizes."""
    counted: dict[str, float] = {"threads": threads()}
    return counted | {f"l{level}_bytes": size for level, size in caches().items()}


@cache
def caches() -> dict[int, int]:
    """Return the bytes of each level's data cache."""
    sizes = {}
    for index in sorted(_CACHES.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            sizes[int(level)] = int(size.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(size[-1], 0)
    return sizes or dict(_ASSUMED)


def array_bytes() -> int:
    """Return the size of an array: `SEVERAL` times the last-level cache, but at most an eighth of the available
    memory."""
    import psutil

    return min(SEVERAL * max(caches().values()), psutil.virtual_memory().available // 8) >> 20 << 20


def parts(size: int) -> list[slice]:
    n = threads()
    return [slice(size * i // n, size * (i + 1) // n) for i in range(n)]


def side_by_side(work: Callable[[Any], Any], pieces: list[Any]) -> float:
    """Run `work` on each piece in its own thread; return the seconds until all are done."""
    with ThreadPoolExecutor(len(pieces)) as pool:
        list(pool.map(lambda _: None, pieces))
        start = time.perf_counter()
        list(pool.map(work, pieces))
        return time.perf_counter() - start
