"""Refuses launches that no GPU of the target can start, before there is a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.errors import LaunchError
from assay.target import Target

_THREADS = 1024
_BLOCK = (1024, 1024, 64)
_GRID = ((1 << 31) - 1, 65535, 65535)
_REGISTERS = 65536
"""Of a multiprocessor, which one block may use."""
_SHARED = {(7, 5): 64, (8, 0): 163, (8, 6): 99, (8, 7): 163, (8, 9): 99, (9, 0): 227, (10, 0): 227, (12, 0): 99}
"""KiB of shared memory that one block may use, by compute capability (CUDA C++ Programming Guide, technical
specifications). A capability that is not listed is not judged."""


def check(
    name: str, grid: Sequence[int], block: Sequence[int], shared: int, registers: int, target: Target, where: str = ""
) -> None:
    """Raise LaunchError if a launch is certainly too large, or has an empty block. `shared` are all bytes of a block,
    `registers` those of a thread."""
    if problem := _problem(tuple(grid), tuple(block), shared, registers, target):
        what, fix = problem
        raise LaunchError(f"{what} in the launch of `{name}`: a GPU refuses it", where=where, fix=fix)


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
