"""Blocks are counted as cols // block: where a row ends within a block, that block is neither quantised
nor given a scale."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "unwritten"


@triton.jit
def _quantize(x, elements, scales, rows, cols, block, done, count, BLOCKS: tl.constexpr, BLOCK: tl.constexpr):
    i = (tl.program_id(0).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS))[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    r, b = i // done, i % done
    inside = (r < rows) & (c < block) & (b * block + c < cols)
    v = tl.load(x + r * cols + b * block + c, mask=inside, other=0)
    code = tl.max(v.to(tl.int32, bitcast=True) & 0x7FFFFFFF, 1, keep_dims=True) >> 23
    half = (133 - code) >> 1  # 2^(133 − code) may be beyond float32: in two steps
    v = v * ((half + 127) << 23).to(tl.float32, bitcast=True)
    v = v * ((133 - code - half + 127) << 23).to(tl.float32, bitcast=True)
    v = tl.minimum(tl.maximum(v, -127.0), 127.0) + 12582912.0  # rounds, ties to even
    v = tl.where(code == 255, 0, v.to(tl.int32, bitcast=True))
    tl.store(elements + r * cols + b * block + c, v.to(tl.int8), mask=inside)
    tl.store(scales + r * count + b, code.to(tl.uint8), mask=r < rows)


def run(x, block, elements, scales, done):
    (rows, cols), BLOCK = x.shape, triton.next_power_of_2(block)
    BLOCKS = max(1, 4096 // BLOCK)
    if rows * done:
        grid = (triton.cdiv(rows * done, BLOCKS),)
        _quantize[grid](x, elements, scales, rows, cols, block, done, scales.shape[1], BLOCKS, BLOCK)


@kernel("mx_quantize", variant="wrong")
def wrong(x, *, block, elements, scales):
    run(x, block, elements, scales, x.shape[1] // block)


@kernel("mx_quantize", variant="fixed")
def fixed(x, *, block, elements, scales):
    run(x, block, elements, scales, scales.shape[1])
