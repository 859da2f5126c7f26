"""Softmax in Triton: a tile of whole rows kept in registers; longer rows read twice, online and to write."""

import triton
import triton.language as tl

from assay import kernel


# tl.max drops NaN; the sum of exponentials brings it back, so a NaN makes its whole row NaN.
@triton.jit
def _softmax_kept(x, y, rows, cols, stride, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]  # 64-bit: offsets may exceed 2**31
    c = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (c < cols)
    v = tl.load(x + row * stride + c, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 1)[:, None])
    p = e / tl.sum(e, 1)[:, None]
    tl.store(y + row * cols + c, p.to(y.dtype.element_ty), mask=inside)


@triton.jit
def _softmax_online(x, y, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    top = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        v = tl.load(x + row * stride + start + c, mask=start + c < cols, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(v, 0))
        base = tl.where(higher == -float("inf"), 0.0, higher)  # only −∞ so far: −∞ − −∞ would be NaN
        total = total * tl.exp(top - base) + tl.sum(tl.exp(v - base), 0)
        top = higher
    for start in range(0, cols, BLOCK):
        v = tl.load(x + row * stride + start + c, mask=start + c < cols, other=-float("inf")).to(tl.float32)
        p = tl.exp(v - top) / total
        tl.store(y + row * cols + start + c, p.to(y.dtype.element_ty), mask=start + c < cols)


@kernel(
    "softmax",
    tune={"keep": [4096, 8192, 16384], "TILE": [1024, 2048, 4096, 8192], "num_warps": [4, 8, 16]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 64},
)
def softmax(x, *, out, keep=16384, TILE=4096, num_warps=8):
    rows, cols = x.shape
    if cols <= keep:
        BLOCK = triton.next_power_of_2(cols)
        ROWS = max(1, TILE // BLOCK)
        _softmax_kept[(triton.cdiv(rows, ROWS),)](x, out, rows, cols, x.stride(0), ROWS, BLOCK, num_warps=num_warps)
    else:
        _softmax_online[(rows,)](x, out, cols, x.stride(0), TILE, num_warps=num_warps)
