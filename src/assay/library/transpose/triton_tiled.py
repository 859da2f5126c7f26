"""Transposition in Triton, tile by tile, turned by the compiler in shared memory: coalesced on both sides."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _transpose(x, out, rows, cols, stride, TILE: tl.constexpr):
    across = tl.cdiv(cols, TILE)
    pid = tl.program_id(0).to(tl.int64)  # 64-bit offsets: the matrix may exceed 2**31 elements
    row = pid // across * TILE + tl.arange(0, TILE)
    col = pid % across * TILE + tl.arange(0, TILE)
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    tile = tl.load(x + row[:, None] * stride + col[None, :], mask=inside)
    tl.store(out + col[:, None] * rows + row[None, :], tl.trans(tile), mask=tl.trans(inside))


@kernel(
    "transpose",
    tune={"TILE": [32, 64, 128], "num_warps": [4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 64},
)
def transpose(x, *, out, TILE=64, num_warps=4):
    rows, cols = x.shape
    tiles = triton.cdiv(rows, TILE) * triton.cdiv(cols, TILE)
    _transpose[(tiles,)](x, out, rows, cols, x.stride(0), TILE, num_warps=num_warps)
