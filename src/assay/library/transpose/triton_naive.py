"""Transposition in Triton, straight: a program reads BLOCK consecutive elements and scatters them."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _transpose(x, out, rows, cols, stride, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # 64-bit: n may exceed 2**31
    row, col = i // cols, i % cols
    tl.store(out + col * rows + row, tl.load(x + row * stride + col, mask=i < n), mask=i < n)


@kernel("transpose", tune={"BLOCK": [256, 512, 1024], "num_warps": [4, 8]})
def transpose(x, *, out, BLOCK=1024, num_warps=4):
    rows, cols = x.shape
    n = rows * cols
    _transpose[(triton.cdiv(n, BLOCK),)](x, out, rows, cols, x.stride(0), n, BLOCK, num_warps=num_warps)
