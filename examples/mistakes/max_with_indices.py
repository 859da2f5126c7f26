"""`>=` instead of `>`: of several equal elements the last in a lane is taken, and the value hides it."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _max(x, values, indices, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    best = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    place = tl.full((ROWS, BLOCK), 2**62, tl.int64)
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)[None, :]).to(tl.int64)
        inside = (row[:, None] < rows) & (col < cols)
        v = tl.load(x + row[:, None] * cols + col, mask=inside, other=float("-inf")).to(tl.float32)
        better = (v >= best) | ((v != v) & (best == best)) | (place == 2**62)  # Wrong: v > best.
        best = tl.where(inside & better, v, best)
        place = tl.where(inside & better, col, place)
    is_nan = best != best
    any_nan = tl.max(is_nan.to(tl.int32), 1)[:, None] > 0
    top = tl.max(tl.where(is_nan, float("-inf"), best), 1)[:, None]
    first = tl.min(tl.where((any_nan & is_nan) | (~any_nan & (best == top)), place, 2**62), 1)
    tl.store(indices + row, first, mask=row < rows)
    tl.store(values + row, tl.load(x + row * cols + first, mask=row < rows), mask=row < rows)


@kernel("../max_with_indices.py:max_with_indices")
def last_of_equals(x, *, values, indices, ROWS=16, BLOCK=16):
    rows, cols = x.shape
    _max[(triton.cdiv(rows, ROWS),)](x, values, indices, rows, cols, ROWS, BLOCK)
