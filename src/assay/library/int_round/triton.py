"""Rounding to integers with a scale in Triton: one pass over short rows; of long ones the largest values first."""

import triton
import triton.language as tl

from assay import kernel
from assay.library.int_round.op import LARGEST_SCALE


@triton.jit
def magnitude(v):
    """Without its sign a float sorts as an integer, NaN and Inf last."""
    return v.to(tl.int32, bitcast=True) & 0x7FFFFFFF


@triton.jit
def scale_of(largest, most, cap):
    """The scale of a row by the bits of its largest magnitude: to nearest even in the upper 16 bits of a float."""
    bits = tl.div_rn(largest.to(tl.float32, bitcast=True), most).to(tl.int32, bitcast=True)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & -65536
    scale = tl.minimum(tl.maximum(bits.to(tl.float32, bitcast=True), 1.1754943508222875e-38), cap)
    return tl.where(largest >= 0x7F800000, float("nan"), scale)


@triton.jit
def rounded(v, scale, most):
    code = tl.minimum(tl.maximum(tl.div_rn(v, scale), -most), most)
    code = (code + 12582912.0) - 12582912.0  # 1.5·2²³: to an integer, ties to even
    return tl.where(scale == scale, code * scale + 0.0, float("nan"))


@triton.jit
def _whole(x, out, rows, cols, most, cap, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]  # 64-bit: offsets may exceed 2**31
    c = tl.arange(0, COLS)[None, :]
    inside = (r < rows) & (c < cols)
    v = tl.load(x + r * cols + c, mask=inside, other=0.0).to(tl.float32)
    scale = scale_of(tl.max(magnitude(v), 1, keep_dims=True), most, cap)
    tl.store(out + r * cols + c, rounded(v, scale, most).to(out.dtype.element_ty), mask=inside)


@triton.jit
def _largest(x, largest, cols, parts, span, PARTS: tl.constexpr, SIZE: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    row, part = program // parts, program % parts
    start = part * span
    end = tl.minimum(start + span, cols)
    seen = tl.zeros([SIZE], tl.int32)
    for at in range(start, end, SIZE):
        c = at + tl.arange(0, SIZE)
        seen = tl.maximum(seen, magnitude(tl.load(x + row * cols + c, mask=c < end, other=0.0).to(tl.float32)))
    tl.store(largest + row * PARTS + part, tl.max(seen, 0))


@triton.jit
def _parts(x, largest, out, cols, parts, span, most, cap, PARTS: tl.constexpr, SIZE: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    row, part = program // parts, program % parts
    p = tl.arange(0, PARTS)
    scale = scale_of(tl.max(tl.load(largest + row * PARTS + p, mask=p < parts, other=0), 0), most, cap)
    start = part * span
    end = tl.minimum(start + span, cols)
    for at in range(start, end, SIZE):
        c = at + tl.arange(0, SIZE)
        v = tl.load(x + row * cols + c, mask=c < end, other=0.0).to(tl.float32)
        tl.store(out + row * cols + c, rounded(v, scale, most).to(out.dtype.element_ty), mask=c < end)


PARTS = 64


@kernel(
    "int_round",
    tune={"size": [2048, 4096, 8192], "num_warps": [4, 8]},
    scratch={"largest": ("int32", "rows", PARTS)},
)
def int_round(x, *, bits, out, largest, size=4096, num_warps=8):
    (rows, cols), most, cap = x.shape, float(2 ** (bits - 1) - 1), LARGEST_SCALE[bits]
    if cols <= size:
        COLS = triton.next_power_of_2(max(1, cols))
        ROWS = max(1, min(16, size // COLS))
        _whole[(triton.cdiv(rows, ROWS),)](x, out, rows, cols, most, cap, ROWS, COLS, num_warps=num_warps)
        return
    parts = min(PARTS, triton.cdiv(cols, size))
    span = triton.cdiv(triton.cdiv(cols, parts), size) * size
    parts = triton.cdiv(cols, span)
    _largest[(rows * parts,)](x, largest, cols, parts, span, PARTS, size, num_warps=num_warps)
    _parts[(rows * parts,)](x, largest, out, cols, parts, span, most, cap, PARTS, size, num_warps=num_warps)
