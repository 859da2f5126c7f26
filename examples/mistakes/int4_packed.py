"""The high four bits come first: neighbours change places, and every statistic of the weights stays the same."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _unpack(packed, scale, out, rows, pairs, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1).to(tl.int64) * COLS + tl.arange(0, COLS)[None, :]
    inside = (row[:, None] < rows) & (col < 2 * pairs)
    byte = tl.load(packed + row[:, None] * pairs + col // 2, mask=inside, other=0).to(tl.int32)
    nibble = (byte >> (4 * (1 - col % 2)).to(tl.int32)) & 15  # Wrong: the low four bits first.
    value = ((nibble ^ 8) - 8).to(tl.float32)
    s = tl.load(scale + row, mask=row < rows, other=0.0).to(tl.float32)
    tl.store(out + row[:, None] * 2 * pairs + col, (value * s[:, None]).to(out.dtype.element_ty), mask=inside)


@kernel("../int4_packed.py:int4_packed")
def high_bits_first(packed, scale, *, out, ROWS=16, COLS=128):
    rows, pairs = packed.shape
    _unpack[(triton.cdiv(rows, ROWS), triton.cdiv(2 * pairs, COLS))](packed, scale, out, rows, pairs, ROWS, COLS)
