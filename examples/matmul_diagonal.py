"""diag(a)·B, in Triton: every row of B times one number; the diagonal matrix itself is never made."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"n": Axis(typical=4096), "m": Axis(min=1, max=2**22, typical=4096)},
    inputs={"a": Tensor("n", range=(-100, 100)), "b": Tensor("n", "m", range=(-100, 100))},
    outputs={"out": Tensor("n", "m")},
    independent="n",
    operations=lambda w: w.n * w.m,
)
def matmul_diagonal(a, b):
    """out[i, j] = a[i]·b[i, j]."""
    return a[:, None] * b


@triton.jit
def _scale(a, b, c, n, m, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1).to(tl.int64) * COLS + tl.arange(0, COLS)
    inside = (row[:, None] < n) & (col[None, :] < m)
    scale = tl.load(a + row, mask=row < n, other=0.0).to(tl.float32)
    v = tl.load(b + row[:, None] * m + col[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(c + row[:, None] * m + col[None, :], (scale[:, None] * v).to(c.dtype.element_ty), mask=inside)


@kernel("matmul_diagonal")
def honest(a, b, *, out, ROWS=32, COLS=128):
    n, m = b.shape
    _scale[(triton.cdiv(n, ROWS), triton.cdiv(m, COLS))](a, b, out, n, m, ROWS, COLS)
