"""Tells launches that no GPU of the target can start, without a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.target import Target

_THREADS = 1024
_BLOCK = (1024, 1024, 64)
_GRID = ((1 << 31) - 1, 65535, 65535)
_REGISTERS = 65536
"""Of a multiprocessor, which one block may use."""
_SHARED = {(7, 5): 64, (8, 0): 163, (8, 6): 99, (8, 7): 163, (8, 9): 99, (9, 0): 227, (10, 0): 227, (12, 0): 99}
"""KiB of shared memory that one block may use, by compute capability (CUDA C++ Programming Guide, technical
specifications). A capability that is not listed is not judged."""
_CLUSTER = {(9, 0): 16, (10, 0): 16, (12, 0): 8}
"""Blocks of the largest cluster."""


def problem(
    name: str,
    grid: Sequence[int],
    block: Sequence[int],
    shared: int,
    registers: int,
    target: Target,
    cluster: int = 1,
) -> str:
    """Return why no GPU of the target can start a launch, and what to do; empty if one may. `shared` are all bytes of a
    block, `registers` those of a thread, `cluster` the blocks of a cluster."""
    found = _problem(tuple(grid), tuple(block), shared, registers, target) or _of_clusters(cluster, target)
    if found:
        what, fix = found
        return f"{what} in the launch of `{name}`: a GPU refuses it\n  → {fix}"
    return ""


def _problem(
    grid: tuple[int, ...], block: tuple[int, ...], shared: int, registers: int, target: Target
) -> tuple[str, str] | None:
    threads = math.prod(block)
    if threads < 1:
        return f"a block of {block}", "a block has at least one thread along each dimension"
    if threads > _THREADS:
        return f"{threads} threads a block", f"at most {_THREADS}; more blocks do the same work"
    if any(size > most for size, most in zip(block, _BLOCK, strict=False)):
        return f"a block of {block}", f"at most {_BLOCK} along each dimension"
    if any(size > most for size, most in zip(grid, _GRID, strict=False)):
        return f"a grid of {grid}", f"at most {_GRID} along each dimension"
    most = _SHARED.get(target.capability)
    if most and shared > most << 10:
        return f"{shared} bytes of shared memory", f"at most {most << 10} bytes a block on {target}"
    if registers * threads > _REGISTERS:
        words = f"{threads} threads of {registers} registers"
        return words, f"at most {_REGISTERS} registers a block: fewer threads, or __launch_bounds__({threads})"
    return None


def _of_clusters(cluster: int, target: Target) -> tuple[str, str] | None:
    if cluster > 1 and target.capability < (9, 0):
        return f"clusters of {cluster} blocks on {target}", "only from sm_90 on: launch another kernel for older GPUs"
    most = _CLUSTER.get(target.capability)
    if most and cluster > most:
        return f"clusters of {cluster} blocks", f"at most {most} on {target}"
    return None
