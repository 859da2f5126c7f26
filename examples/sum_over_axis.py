"""The sum over the middle axis of three, in Triton: neighbouring lanes take neighbouring columns."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"b": Axis(max=65535, typical=16), "n": Axis(typical=256), "m": Axis(min=1, typical=256)},
    inputs={"x": Tensor("b", "n", "m", range=(-100, 100))},
    outputs={"out": Tensor("b", "m")},
    independent="b",
    operations=lambda w: w.b * w.n * w.m,
)
def sum_over_axis(x):
    """Σ over the second dimension; 0 where it is empty."""
    return x.sum(1)


@triton.jit
def _sum(x, out, n, m, ROWS: tl.constexpr, COLS: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    col = tl.program_id(0).to(tl.int64) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, n, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row[:, None] < n) & (col[None, :] < m)
        total += tl.load(x + (batch * n + row[:, None]) * m + col[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(out + batch * m + col, tl.sum(total, 0).to(out.dtype.element_ty), mask=col < m)


@kernel("sum_over_axis")
def honest(x, *, out, ROWS=16, COLS=64):
    b, n, m = x.shape
    _sum[(triton.cdiv(m, COLS), b)](x, out, n, m, ROWS, COLS)
