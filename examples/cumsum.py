"""Prefix sums along rows, in Triton: a scan inside each block, and what came before is carried on."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(typical=1024), "cols": Axis(min=1, typical=4096)},
    inputs={"x": Tensor("rows", "cols", range=(-10, 10))},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def cumsum(x):
    """out[r, c] = Σ x[r, 0…c]."""
    return x.cumsum(-1)


@triton.jit
def _scan(x, out, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    carry = tl.zeros((ROWS,), tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < rows) & (col < cols)
        v = tl.load(x + row[:, None] * cols + col, mask=inside, other=0.0).to(tl.float32)
        scanned = tl.cumsum(v, 1) + carry[:, None]
        tl.store(out + row[:, None] * cols + col, scanned.to(out.dtype.element_ty), mask=inside)
        # The last column; Triton 3.7 cannot compile `carry += tl.sum(v, 1)` where `carry` is used elsewhere too.
        carry = tl.sum(tl.where(col == start + BLOCK - 1, scanned, 0.0), 1)


@kernel("cumsum")
def honest(x, *, out, ROWS=8, BLOCK=128):
    rows, cols = x.shape
    _scan[(triton.cdiv(rows, ROWS),)](x, out, rows, cols, ROWS, BLOCK)
