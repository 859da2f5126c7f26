"""The product of every row, in Triton: lanes beyond the row count as 1."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    # Short rows of numbers near 1: a longer product would overflow.
    axes={"rows": Axis(typical=65536), "cols": Axis(min=1, max=128, typical=48)},
    inputs={"x": Tensor("rows", "cols", range=(0.5, 1.5))},
    outputs={"out": Tensor("rows")},
    dtypes=("fp32", "bf16"),
    independent="rows",
    operations=lambda w: w.rows * w.cols,
    roundings=64,  # half an ulp for each of up to 128 products
)
def product_over_axis(x):
    """Π over each row."""
    return x.prod(-1)


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def _product(x, out, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    v = tl.load(x + row[:, None] * cols + col[None, :], mask=inside, other=1.0).to(tl.float32)
    tl.store(out + row, tl.reduce(v, 1, _times).to(out.dtype.element_ty), mask=row < rows)


@kernel("product_over_axis")
def honest(x, *, out, ROWS=32):
    rows, cols = x.shape
    _product[(triton.cdiv(rows, ROWS),)](x, out, rows, cols, ROWS, triton.next_power_of_2(cols))
