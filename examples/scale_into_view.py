"""Writes 2·x into a slice of a larger tensor, in Triton: the output has strides of its own."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=768)},
    inputs={"x": Tensor("rows", "cols")},
    outputs={"out": Tensor("rows", "cols", strided=True)},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def scale_into_view(x):
    """2·x; the rows of the output may lie apart, as those of `whole[:, :cols]` do."""
    return x * 2


@triton.jit
def _scale(x, out, rows, cols, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(1).to(tl.int64) * COLS + tl.arange(0, COLS))[None, :]
    inside = (row < rows) & (col < cols)
    v = tl.load(x + row * cols + col, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * stride + col, (v * 2).to(out.dtype.element_ty), mask=inside)


@kernel("scale_into_view")
def honest(x, *, out, ROWS=16, COLS=128):
    rows, cols = x.shape
    _scale[(triton.cdiv(rows, ROWS), triton.cdiv(cols, COLS))](x, out, rows, cols, out.stride(0), ROWS, COLS)
