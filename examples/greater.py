"""A boolean mask from a comparison, in Triton: true where x is greater than its column's threshold."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols"), "threshold": Tensor("cols")},
    outputs={"out": Tensor("rows", "cols", dtype="bool")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def greater(x, threshold):
    """x[r, c] > threshold[c]; a comparison with NaN is false."""
    return x > threshold


@triton.jit
def _compare(x, threshold, out, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(1).to(tl.int64) * COLS + tl.arange(0, COLS))[None, :]
    inside = (row < rows) & (col < cols)
    v = tl.load(x + row * cols + col, mask=inside, other=0.0).to(tl.float32)
    limit = tl.load(threshold + col, mask=col < cols, other=0.0).to(tl.float32)
    tl.store(out + row * cols + col, v > limit, mask=inside)


@kernel("greater")
def honest(x, threshold, *, out, ROWS=16, COLS=128):
    rows, cols = x.shape
    _compare[(triton.cdiv(rows, ROWS), triton.cdiv(cols, COLS))](x, threshold, out, rows, cols, ROWS, COLS)
