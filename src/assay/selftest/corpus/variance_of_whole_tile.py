"""A tile holds several short rows, and the axis is missing in the sum of squares: all rows of the tile
share one variance."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "values or nonfinite"


@triton.jit
def _layernorm(
    x, weight, bias, y, rows, cols, stride, eps, PER_ROW: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    r = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    inside = (r < rows) & (c < cols)
    v = tl.load(x + r * stride + c, mask=inside, other=0)
    v = tl.where(inside, v - tl.sum(v, 1, keep_dims=True) / cols, 0)
    if PER_ROW:
        variance = tl.sum(v * v, 1, keep_dims=True) / cols
    else:
        variance = tl.sum(v * v) / (cols * tl.minimum(ROWS, rows - tl.program_id(0) * ROWS))
    v /= tl.sqrt(variance + eps)
    if weight is not None:
        v *= tl.load(weight + c, mask=c < cols, other=0)
    if bias is not None:
        v += tl.load(bias + c, mask=c < cols, other=0)
    tl.store(y + r * cols + c, v, mask=inside)


def run(x, weight, bias, eps, out, per_row):
    rows, cols = x.shape
    BLOCK = triton.next_power_of_2(cols)
    ROWS = max(1, 2048 // BLOCK)
    grid = (triton.cdiv(rows, ROWS),)
    _layernorm[grid](x, weight, bias, out, rows, cols, x.stride(0), eps, per_row, ROWS, BLOCK)


@kernel("layernorm", variant="wrong", most={"cols": 65536})
def wrong(x, weight, bias, *, eps, out):
    run(x, weight, bias, eps, out, False)


@kernel("layernorm", variant="fixed", most={"cols": 65536})
def fixed(x, weight, bias, *, eps, out):
    run(x, weight, bias, eps, out, True)
