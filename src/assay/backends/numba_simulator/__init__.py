"""Numba's CUDA simulator, mended to compute what a GPU computes. Each file states one difference and its mend; all are
applied once, in a worker that simulates, before the kernel's file is imported."""

from __future__ import annotations

_mended = False


def mend() -> None:
    global _mended
    if _mended:
        return
    _mended = True
    from assay.backends.numba_simulator import intrinsics, launch, memory, numbers, warp

    for part in (launch, memory, numbers, intrinsics, warp):
        part.mend()
