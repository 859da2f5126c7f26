"""The warps of a program hand values on through global memory, and read them without waiting for each other."""

import torch
import triton
import triton.language as tl

from assay import kernel

DETECTOR = "race or unstable or values or nonfinite or stale"
NEEDS = "gpu"
DTYPE = "fp32"
BLOCK = 1024


@triton.jit
def _relu(x, handed, out, n, BLOCK: tl.constexpr, MENDED: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    i = first + tl.arange(0, BLOCK)
    tl.store(handed + i, tl.load(x + i, mask=i < n, other=0))
    if MENDED:
        tl.debug_barrier()
    j = first + BLOCK - 1 - tl.arange(0, BLOCK)  # what another warp wrote
    v = tl.load(handed + j)
    tl.store(out + j, tl.where(v < 0, 0, v), mask=j < n)


@kernel("relu", variant="wrong", dtypes=["fp32"])
def wrong(x, *, out):
    _launch(x, out, False)


@kernel("relu", variant="fixed", dtypes=["fp32"])
def fixed(x, *, out):
    _launch(x, out, True)


def _launch(x, out, fixed):
    programs = triton.cdiv(x.numel(), BLOCK)
    if programs:
        handed = torch.empty(programs * BLOCK, dtype=x.dtype, device=x.device)
        _relu[(programs,)](x, handed, out, x.numel(), BLOCK, fixed, num_warps=8)
