"""Rows of a table by index, in Triton: an index input is always within its axis, so nothing needs to be clamped."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"tokens": Axis(typical=4096), "vocabulary": Axis(min=1, typical=30522), "dim": Axis(min=1, typical=384)},
    inputs={
        "table": Tensor("vocabulary", "dim"),
        "index": Tensor("tokens", dtype="int64", index="vocabulary"),
    },
    outputs={"out": Tensor("tokens", "dim")},
    traffic=lambda w: w.tokens * (8 + 2 * w.dim * w.dtype.itemsize),  # only the rows that are asked for
)
def embedding(table, index):
    """out[t] = table[index[t]]."""
    return table[index]


@triton.jit
def _rows(table, index, out, tokens, dim, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1).to(tl.int64) * COLS + tl.arange(0, COLS)[None, :]
    which = tl.load(index + row, mask=row < tokens, other=0)[:, None]
    inside = (row[:, None] < tokens) & (col < dim)
    v = tl.load(table + which * dim + col, mask=inside)
    tl.store(out + row[:, None] * dim + col, v, mask=inside)


@kernel("embedding")
def honest(table, index, *, out, ROWS=16, COLS=128):
    tokens, dim = out.shape
    _rows[(triton.cdiv(tokens, ROWS), triton.cdiv(dim, COLS))](table, index, out, tokens, dim, ROWS, COLS)
