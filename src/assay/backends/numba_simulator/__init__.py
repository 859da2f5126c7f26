"""Numba's CUDA simulator, patched to compute what a GPU computes. Each file states one difference and its patch; all
are applied once, in a worker that simulates, before the kernel's file is imported."""

from __future__ import annotations

_patched = False


def patch() -> None:
    global _patched
    if _patched:
        return
    _patched = True
    from assay.backends.numba_simulator import intrinsics, launch, memory, numbers, signatures, warp

    for part in (signatures, launch, memory, numbers, intrinsics, warp):
        part.patch()
