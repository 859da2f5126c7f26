"""The packed linear layer in Triton: one row of x as a sum of products, more as tiles on the tensor cores."""

import torch
import triton
import triton.language as tl

from assay import kernel
from assay.backends.cuda import cdiv
from assay.library.mx_dequantize.triton import step_value


@triton.jit
def element_value(code):
    """int8 as float32: with 128 added it is the last bits of 2²³. The GPU converts a sixteenth as many a cycle."""
    bits = code.to(tl.uint8, bitcast=True).to(tl.int32) ^ 0x4B000080
    return bits.to(tl.float32, bitcast=True) - 8388736.0


# Weights are read as [rows, blocks, elements of a block], so that a scale is one number beside its block. A long block
# counts as `parts` short ones of the same scale.
@triton.jit
def _mx_row(
    x,
    elements,
    scales,
    bias,
    out,
    n,
    k,
    block,
    count,
    parts,
    width,
    ROWS: tl.constexpr,
    BLOCKS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)  # 64-bit: offsets may exceed 2**31
    b, c = tl.arange(0, BLOCKS)[None, :], tl.arange(0, BLOCK)[None, None, :]
    here, weights = row[:, None], row[:, None, None]
    total = tl.zeros((ROWS, BLOCKS), tl.float32)
    for first in range(0, count, BLOCKS):
        column = (first + b)[:, :, None] * block + c
        inside = (c < block) & (column < k)
        code = tl.load(elements + weights * k + column, mask=(weights < n) & inside, other=0)
        v = tl.load(x + column, mask=inside, other=0).to(tl.float32)
        at = (first + b) // parts
        step = step_value(tl.load(scales + here * width + at, mask=(here < n) & (at < width), other=0))
        total += tl.sum(element_value(code) * v, 2) * step
    sums = tl.sum(total, 1)
    if bias is not None:
        sums += tl.load(bias + row, mask=row < n, other=0).to(tl.float32)
    tl.store(out + row, sums.to(out.dtype.element_ty), mask=row < n)


@triton.jit
def halves(v):
    """A float as the bf16 of its upper 16 bits (cut off, not rounded, so never an infinity of its own), and what that
    leaves out; nothing of an infinity."""
    high = (v.to(tl.uint32, bitcast=True) & 0xFFFF0000).to(tl.float32, bitcast=True)
    return high.to(tl.bfloat16), tl.where(tl.abs(v) == float("inf"), 0.0, v - high)


# bf16 holds every weight exactly, scale and all. So a value of x is cut into as many bf16 as it takes: one, two for
# fp16, three for fp32; the smallest go first. Long sums lose bits: `length` blocks are summed, then the sums; in fp32,
# which has more to lose, every product by itself.
@triton.jit
def _mx_tile(
    x,
    elements,
    scales,
    bias,
    out,
    m,
    n,
    k,
    block,
    count,
    parts,
    width,
    length,
    M: tl.constexpr,
    N: tl.constexpr,
    BLOCKS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    tiles = tl.cdiv(n, N)
    i = (pid // tiles * M + tl.arange(0, M))[:, None]
    row = (pid % tiles * N + tl.arange(0, N))[:, None, None]
    b, c = tl.arange(0, BLOCKS)[None, :, None], tl.arange(0, BLOCK)[None, None, :]
    flat = tl.arange(0, BLOCKS * BLOCK)[None, :]  # the columns once more, as a row of x has them
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, count, length):
        run = tl.zeros((M, N), tl.float32)
        for first in range(start, tl.minimum(start + length, count), BLOCKS):
            column = (first + b) * block + c
            inside = (row < n) & (c < block) & (column < k)
            code = tl.load(elements + row * k + column, mask=inside, other=0)
            at = (first + b) // parts
            step = step_value(tl.load(scales + row * width + at, mask=(row < n) & (at < width), other=0))
            w = tl.trans(tl.reshape((element_value(code) * step).to(tl.bfloat16), (N, BLOCKS * BLOCK)))
            column = (first + flat // BLOCK) * block + flat % BLOCK
            v = tl.load(x + i * k + column, mask=(i < m) & (flat % BLOCK < block) & (column < k), other=0)
            if x.dtype.element_ty == tl.bfloat16:
                run = tl.dot(v, w, run)
            else:
                high, low = halves(v.to(tl.float32))
                if x.dtype.element_ty == tl.float16:
                    run = tl.dot(high, w, tl.dot(low.to(tl.bfloat16), w, run))
                else:
                    middle, low = halves(low)
                    run += tl.dot(high, w, tl.dot(middle, w, tl.dot(low.to(tl.bfloat16), w)))
        total += run
    j = (pid % tiles * N + tl.arange(0, N))[None, :]
    if bias is not None:
        total += tl.load(bias + j, mask=j < n, other=0).to(tl.float32)
    tl.store(out + i * n + j, total.to(out.dtype.element_ty), mask=(i < m) & (j < n))


# Not Triton's: called from Python it takes a microsecond, as its cdiv does.
def power_of_2(n):
    return 1 << max(0, n - 1).bit_length()


TILES = {
    torch.bfloat16: ((128, 64, 64, 4), (64, 32, 128, 4), (16, 32, 64, 4)),
    torch.float16: ((128, 128, 64, 8), (64, 64, 64, 4), (64, 32, 64, 4), (16, 32, 64, 4)),
    torch.float32: ((128, 128, 32, 8), (64, 64, 64, 4), (64, 32, 64, 4), (16, 32, 64, 4)),
}
"""Rows of x, rows of the weight, columns, warps. Large ones read less; small ones keep a whole GPU busy with little
work. The first of which there are enough is taken."""
STREAMED = (32, 128, 128, 4)
"""Up to so many rows of x are done before a large weight has arrived: wide tiles, that more of it is on its way. In
fp32, three products each, they are not."""
ENOUGH = {torch.bfloat16: 64, torch.float16: 96, torch.float32: 96}
"""Tiles that keep an H200's 132 processors busier than fewer, larger ones do."""


def _tile(m, n, dtype):
    tiles, enough = TILES[dtype], ENOUGH[dtype]
    if dtype != torch.float32 and m <= STREAMED[0]:
        tiles = (STREAMED, tiles[-1])
    return next((t for t in tiles if cdiv(m, t[0]) * cdiv(n, t[1]) >= enough), tiles[-1])


@kernel(
    "mx_linear",
    tune={
        "size": [4096, 8192],
        "wide": [512, 1024],
        "M": [16, 64, 128],
        "N": [32, 64, 128],
        "K": [32, 64, 128],
        "num_warps": [4, 8],
    },
)
def mx_linear(x, elements, scales, bias, *, block, out, size=8192, wide=1024, M=0, N=0, K=0, num_warps=0):
    (m, k), (n, width) = x.shape, scales.shape
    parts = next(p for p in range(1, block + 1) if block % p == 0 and block // p <= 128)
    block //= parts
    count, BLOCK = cdiv(k, block), power_of_2(block)
    if m == 1:
        BLOCKS = max(1, min(power_of_2(max(1, count)), wide // BLOCK))
        ROWS = max(1, size // (BLOCKS * BLOCK))
        _mx_row[(cdiv(n, ROWS),)](
            x,
            elements,
            scales,
            bias,
            out,
            n,
            k,
            block,
            count,
            parts,
            width,
            ROWS,
            BLOCKS,
            BLOCK,
            num_warps=num_warps or 4,
        )
        return
    tile = _tile(m, n, x.dtype)
    M, N = M or tile[0], N or tile[1]
    while M > 16 and (M >= 2 * m or k < 8):  # Triton 3.6 cannot compile so short a sum in a large tile
        M //= 2
    BLOCKS = max(1, (K or tile[2]) // BLOCK)
    _mx_tile[(cdiv(m, M) * cdiv(n, N),)](
        x,
        elements,
        scales,
        bias,
        out,
        m,
        n,
        k,
        block,
        count,
        parts,
        width,
        16 * BLOCKS,
        M,
        N,
        BLOCKS,
        BLOCK,
        num_warps=num_warps or tile[3],
    )
