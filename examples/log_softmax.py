"""log softmax along rows, in Triton: x − max − log Σ e^(x − max), in one formula, never log(softmax)."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1000)},
    inputs={"x": Tensor("rows", "cols", range=(-1000, 1000))},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: 5 * w.rows * w.cols,
)
def log_softmax(x):
    """x − log Σ e^x along each row."""
    return x.log_softmax(-1)


@triton.jit
def _log_softmax(x, out, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    at = row[:, None] * cols
    most = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < rows) & (i < cols)
        most = tl.maximum(most, tl.load(x + at + i, mask=inside, other=float("-inf")).to(tl.float32))
    top = tl.max(most, 1)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < rows) & (i < cols)
        v = tl.load(x + at + i, mask=inside, other=float("-inf")).to(tl.float32)
        total += tl.where(inside, tl.exp(v - top[:, None]), 0.0)
    below = tl.log(tl.sum(total, 1))
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < rows) & (i < cols)
        v = tl.load(x + at + i, mask=inside, other=0.0).to(tl.float32)
        result = (v - top[:, None]) - below[:, None]
        tl.store(out + at + i, result.to(out.dtype.element_ty), mask=inside)


@kernel("log_softmax")
def honest(x, *, out, ROWS=8, BLOCK=128):
    rows, cols = x.shape
    _log_softmax[(triton.cdiv(rows, ROWS),)](x, out, rows, cols, ROWS, BLOCK)
