"""The scale's code goes straight into a float's exponent: 255 becomes infinity there, and the format says NaN."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "nonfinite"


@triton.jit
def _dequantize(elements, scales, out, n, cols, block, count, NAN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    code = tl.load(scales + i // cols * count + i % cols // block, mask=i < n, other=127).to(tl.int32)
    bits = tl.where(code == 0, 0x00400000, code << 23)  # 2⁻¹²⁷ is subnormal
    if NAN:
        bits = tl.where(code == 255, 0x7FC00000, bits)
    step = bits.to(tl.float32, bitcast=True) * 0.015625
    v = tl.load(elements + i, mask=i < n, other=0).to(tl.float32) * step
    tl.store(out + i, v.to(out.dtype.element_ty), mask=i < n)


def run(elements, scales, block, out, nan):
    n, cols = elements.numel(), elements.shape[1]
    if n:
        _dequantize[(triton.cdiv(n, 4096),)](elements, scales, out, n, cols, block, scales.shape[1], nan, 4096)


@kernel("mx_dequantize", variant="wrong")
def wrong(elements, scales, *, block, out):
    run(elements, scales, block, out, False)


@kernel("mx_dequantize", variant="fixed")
def fixed(elements, scales, *, block, out):
    run(elements, scales, block, out, True)
