"""Euclidean distance in Triton: one program per row, in chunks of BLOCK columns."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _distance(x, y, out, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        a = tl.load(x + row * cols + i, mask=i < cols, other=0.0).to(tl.float32)
        b = tl.load(y + row * cols + i, mask=i < cols, other=0.0).to(tl.float32)
        total += (a - b) * (a - b)
    tl.store(out + row, tl.sqrt(tl.sum(total)).to(out.dtype.element_ty))


@kernel("euclidean_distance", tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [1, 2, 4, 8]})
def euclidean_distance(x, y, *, out, BLOCK=1024, num_warps=4):
    rows, cols = x.shape
    BLOCK = min(BLOCK, triton.next_power_of_2(max(cols, 1)))
    _distance[(rows,)](x, y, out, cols, BLOCK, num_warps=num_warps)
