"""Quantisation to MXINT8 in Triton: tiles of whole blocks, the largest value's exponent taken from its bits."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _mx_quantize(
    x, elements, scales, rows, cols, block, count, EVEN: tl.constexpr, BLOCKS: tl.constexpr, BLOCK: tl.constexpr
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
    v = tl.load(x + at, mask=inside, other=0).to(tl.float32)
    # Without its sign a float sorts as an integer, NaN and Inf last; its exponent field is the E8M0 code.
    code = tl.max(v.to(tl.int32, bitcast=True) & 0x7FFFFFFF, 1, keep_dims=True) >> 23
    shift = 133 - code  # 2^shift may be beyond float32: in two steps
    half = shift >> 1
    v = v * ((half + 127) << 23).to(tl.float32, bitcast=True)
    v = v * ((shift - half + 127) << 23).to(tl.float32, bitcast=True)
    # Adding 1.5·2²³ rounds to an integer, ties to even, and leaves it in the low byte.
    v = tl.minimum(tl.maximum(v, -127.0), 127.0) + 12582912.0
    v = tl.where(code == 255, 0, v.to(tl.int32, bitcast=True))
    tl.store(elements + at, v.to(tl.int8), mask=inside)
    tl.store(scales + i, code.to(tl.uint8), mask=i < rows * count)


@kernel("mx_quantize", tune={"size": [1024, 2048, 4096], "num_warps": [4, 8]})
def mx_quantize(x, *, block, elements, scales, size=2048, num_warps=4):
    (rows, cols), count, BLOCK = x.shape, scales.shape[1], triton.next_power_of_2(block)
    BLOCKS = max(1, size // BLOCK)
    _mx_quantize[(triton.cdiv(rows * count, BLOCKS),)](
        x, elements, scales, rows, cols, block, count, block == BLOCK and cols % block == 0, BLOCKS, BLOCK,
        num_warps=num_warps,
    )  # fmt: skip
