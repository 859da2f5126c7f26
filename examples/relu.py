"""ReLU of tensors whose rows, and the elements in them, may lie apart in memory, in Triton.

relu_strided.cu beside it is the same op as a bare CUDA file: `assay check relu_strided.cu --op relu.py:relu`."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols", strided="all")},
    outputs={"out": Tensor("rows", "cols", strided="all")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def relu(x):
    """0 where x < 0, else x itself: −0.0 and NaN are passed on."""
    return x.masked_fill(x < 0, 0)


@triton.jit
def _relu(x, out, rows, cols, x_row, x_col, out_row, out_col, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(1).to(tl.int64) * COLS + tl.arange(0, COLS))[None, :]
    inside = (row < rows) & (col < cols)
    v = tl.load(x + row * x_row + col * x_col, mask=inside, other=0.0)
    tl.store(out + row * out_row + col * out_col, tl.where(v < 0, 0.0, v).to(out.dtype.element_ty), mask=inside)


@kernel("relu")
def honest(x, *, out, ROWS=16, COLS=128):
    rows, cols = x.shape
    grid = (triton.cdiv(rows, ROWS), triton.cdiv(cols, COLS))
    _relu[grid](x, out, rows, cols, *x.stride(), *out.stride(), ROWS, COLS)
