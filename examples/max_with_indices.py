"""The maximum of every row and where it stands, in Triton: two outputs of unlike dtype from one pass."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols")},
    outputs={"values": Tensor("rows"), "indices": Tensor("rows", dtype="int64")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def max_with_indices(x):
    """The largest element of each row and its index, the first of several; NaN is larger than all."""
    return tuple(x.max(-1))


@triton.jit
def _max(x, values, indices, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    best = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    place = tl.full((ROWS, BLOCK), 2**62, tl.int64)  # nothing seen yet
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)[None, :]).to(tl.int64)
        inside = (row[:, None] < rows) & (col < cols)
        v = tl.load(x + row[:, None] * cols + col, mask=inside, other=float("-inf")).to(tl.float32)
        better = (v > best) | ((v != v) & (best == best)) | (place == 2**62)
        best = tl.where(inside & better, v, best)
        place = tl.where(inside & better, col, place)
    # Over the lanes: among the NaN if there is one, else among those equal to the maximum, the first.
    is_nan = best != best
    any_nan = tl.max(is_nan.to(tl.int32), 1)[:, None] > 0
    top = tl.max(tl.where(is_nan, float("-inf"), best), 1)[:, None]
    first = tl.min(tl.where((any_nan & is_nan) | (~any_nan & (best == top)), place, 2**62), 1)
    tl.store(indices + row, first, mask=row < rows)
    tl.store(values + row, tl.load(x + row * cols + first, mask=row < rows), mask=row < rows)


@kernel("max_with_indices")
def honest(x, *, values, indices, ROWS=16, BLOCK=64):
    rows, cols = x.shape
    _max[(triton.cdiv(rows, ROWS),)](x, values, indices, rows, cols, ROWS, BLOCK)
