"""MXINT8 to floats in Triton: tiles of whole blocks, each block's scale put together from its code's bits."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def step_value(code):
    """2^(code − 133). Before the 2⁻⁶, code 0 is 2⁻¹²⁷, a subnormal, code 255 NaN: both have the upper fraction bit."""
    code = code.to(tl.int32)
    bits = (code << 23) | tl.where((code == 0) | (code == 255), 0x00400000, 0)
    return bits.to(tl.float32, bitcast=True) * 0.015625


@triton.jit
def _mx_dequantize(
    elements, scales, out, rows, cols, block, count, EVEN: tl.constexpr, BLOCKS: tl.constexpr, BLOCK: tl.constexpr
):
    i = (tl.program_id(0).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS))[:, None]  # 64-bit: offsets may exceed 2**31
    c = tl.arange(0, BLOCK)[None, :]
    if EVEN:  # blocks lie one after the other
        at = i * BLOCK + c
        inside = (i < rows * count) & (c < BLOCK)
    else:
        column = i % count * block + c
        at = i // count * cols + column
        inside = (i < rows * count) & (c < block) & (column < cols)
    step = step_value(tl.load(scales + i, mask=i < rows * count, other=0))
    v = tl.load(elements + at, mask=inside, other=0).to(tl.float32) * step
    tl.store(out + at, v.to(out.dtype.element_ty), mask=inside)


@kernel("mx_dequantize", tune={"size": [1024, 2048, 4096], "num_warps": [4, 8]})
def mx_dequantize(elements, scales, *, block, out, size=2048, num_warps=4):
    (rows, cols), count, BLOCK = elements.shape, scales.shape[1], triton.next_power_of_2(block)
    BLOCKS = max(1, size // BLOCK)
    _mx_dequantize[(triton.cdiv(rows * count, BLOCKS),)](
        elements, scales, out, rows, cols, block, count, block == BLOCK and cols % block == 0, BLOCKS, BLOCK,
        num_warps=num_warps,
    )  # fmt: skip
