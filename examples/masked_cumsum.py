"""Prefix sums of the elements that a boolean mask keeps, in Triton."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(typical=1024), "cols": Axis(min=1, typical=4096)},
    inputs={"x": Tensor("rows", "cols", range=(-10, 10)), "mask": Tensor("rows", "cols", dtype="bool")},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def masked_cumsum(x, mask):
    """out[r, c] = Σ of those x[r, 0…c] whose mask is true; a NaN that is masked out does not count."""
    return x.masked_fill(~mask, 0).cumsum(-1)


@triton.jit
def _scan(x, mask, out, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    carry = tl.zeros((ROWS,), tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < rows) & (col < cols)
        at = row[:, None] * cols + col
        kept = tl.load(mask + at, mask=inside, other=0).to(tl.int1)
        v = tl.load(x + at, mask=inside & kept, other=0.0).to(tl.float32)
        scanned = tl.cumsum(v, 1) + carry[:, None]
        tl.store(out + at, scanned.to(out.dtype.element_ty), mask=inside)
        # The last column; Triton 3.7 cannot compile `carry += tl.sum(v, 1)` where `carry` is used elsewhere too.
        carry = tl.sum(tl.where(col == start + BLOCK - 1, scanned, 0.0), 1)


@kernel("masked_cumsum")
def honest(x, mask, *, out, ROWS=8, BLOCK=128):
    rows, cols = x.shape
    _scan[(triton.cdiv(rows, ROWS),)](x, mask, out, rows, cols, ROWS, BLOCK)
