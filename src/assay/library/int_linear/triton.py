"""The integer linear layer in Triton: one row of x as a sum of products, more as tiles on the tensor cores."""

import torch
import triton
import triton.language as tl

from assay import kernel
from assay.backends.cuda import cdiv
from assay.library.mx_linear.triton import halves


@triton.jit
def code_value(stored, BITS: tl.constexpr):
    """As float32: a stored code is the last bits of 2²³. The GPU converts a sixteenth as many a cycle."""
    return (stored.to(tl.int32) | 0x4B000000).to(tl.float32, bitcast=True) - (8388608.0 + 2 ** (BITS - 1))


@triton.jit
def nibble_value(word, SHIFT: tl.constexpr):
    """A nibble where it stands, less 8: 2^SHIFT times too large."""
    bits = (word & (15 << SHIFT)) | 0x4B000000
    return bits.to(tl.float32, bitcast=True) - (8388608.0 + (8 << SHIFT))


@triton.jit
def word_products(word, v):
    """The sum of eight codes, the nibbles of a word, times the eight values [2, 2, 2] of x beside it. Nibbles are taken
    where they stand, and values of x made smaller instead, which is exact and serves every row."""
    even, odd = tl.split(v)  # by the last bit of their place, then by the one before
    v0, v2 = tl.split(even)
    v1, v3 = tl.split(odd)
    v0, v4 = tl.split(v0)
    v1, v5 = tl.split(v1)
    v2, v6 = tl.split(v2)
    v3, v7 = tl.split(v3)
    upper = word >> 16
    total = nibble_value(word, 0) * v0
    total += nibble_value(word, 4) * (v1 * 0.0625)
    total += nibble_value(word, 8) * (v2 * 0.00390625)
    total += nibble_value(word, 12) * (v3 * 0.000244140625)
    total += nibble_value(upper, 0) * v4
    total += nibble_value(upper, 4) * (v5 * 0.0625)
    total += nibble_value(upper, 8) * (v6 * 0.00390625)
    total += nibble_value(upper, 12) * (v7 * 0.000244140625)
    return total


# Weights are read as [rows, blocks, codes of a block], so that a scale is one number beside its block. A long group
# counts as `parts` blocks of the same scale.
@triton.jit
def _int_row(
    x,
    codes,
    scales,
    bias,
    out,
    n,
    k,
    width,
    count,
    parts,
    groups,
    BITS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCKS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Codes of 8 bits are read as bytes, those of 4 as words: `width` counts either."""
    UNITS: tl.constexpr = BLOCK if BITS == 8 else BLOCK // 8
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)  # 64-bit: offsets may exceed 2**31
    b = tl.arange(0, BLOCKS)
    here, weights = row[:, None], row[:, None, None]
    total = tl.zeros((ROWS, BLOCKS), tl.float32)
    for first in range(0, count, BLOCKS):
        unit = ((first + b)[:, None] * UNITS + tl.arange(0, UNITS)[None, :])[None, :, :]
        stored = tl.load(codes + weights * width + unit, mask=(weights < n) & (unit < width), other=0)
        column = (first + b)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
        v = tl.load(x + column, mask=column < k, other=0).to(tl.float32)
        if BITS == 8:
            products = code_value(stored, BITS) * v[None, :, :]
        else:
            products = word_products(stored, tl.reshape(v, (1, BLOCKS, UNITS, 2, 2, 2)))
        at = ((first + b) // parts)[None, :]
        scale = tl.load(scales + here * groups + at, mask=(here < n) & (at < groups), other=0).to(tl.float32)
        total += tl.sum(products, 2) * scale
    sums = tl.sum(total, 1)
    if bias is not None:
        sums += tl.load(bias + row, mask=row < n, other=0).to(tl.float32)
    tl.store(out + row, sums.to(out.dtype.element_ty), mask=row < n)


# bf16 and fp16 hold every code exactly; the product of a block is scaled in float. An fp32 x is cut into three bf16,
# and the smallest go first.
@triton.jit
def _int_tile(
    x,
    codes,
    scales,
    bias,
    out,
    m,
    n,
    k,
    width,
    count,
    parts,
    groups,
    BITS: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    BLOCK: tl.constexpr,
):
    BYTES: tl.constexpr = BLOCK * BITS // 8
    pid = tl.program_id(0).to(tl.int64)
    tiles = tl.cdiv(n, N)
    i = (pid // tiles * M + tl.arange(0, M))[:, None]
    j = pid % tiles * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for b in range(0, count):
        byte = (b * BYTES + tl.arange(0, BYTES))[None, :]
        stored = tl.load(codes + j[:, None] * width + byte, mask=(j[:, None] < n) & (byte < width), other=0)
        column = (b * BLOCK + tl.arange(0, BLOCK))[None, :]
        v = tl.load(x + i * k + column, mask=(i < m) & (column < k), other=0)
        scale = tl.load(scales + j * groups + b // parts, mask=j < n, other=0).to(tl.float32)
        if BITS == 8:
            values = code_value(stored, BITS)
        else:
            pairs = tl.join(code_value(stored & 15, BITS), code_value(stored >> 4, BITS))
            values = tl.reshape(pairs, (N, BLOCK))
        if x.dtype.element_ty == tl.float32:
            w = tl.trans(values.to(tl.bfloat16))
            high, low = halves(v)
            middle, low = halves(low)
            products = tl.dot(high, w, tl.dot(middle, w, tl.dot(low.to(tl.bfloat16), w)))
        else:
            products = tl.dot(v, tl.trans(values.to(x.dtype.element_ty)))
        total += products * scale[None, :]
    j = j[None, :]
    if bias is not None:
        total += tl.load(bias + j, mask=j < n, other=0).to(tl.float32)
    tl.store(out + i * n + j, total.to(out.dtype.element_ty), mask=(i < m) & (j < n))


# Any group: every weight beside its own scale.
@triton.jit
def _int_any(
    x,
    codes,
    scales,
    bias,
    out,
    n,
    k,
    width,
    group,
    groups,
    BITS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    PER: tl.constexpr = 8 // BITS
    pid = tl.program_id(0).to(tl.int64)
    tiles = tl.cdiv(n, ROWS)
    i, row = pid // tiles, pid % tiles * ROWS + tl.arange(0, ROWS)
    here = row[:, None]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, k, COLUMNS):
        column = (first + tl.arange(0, COLUMNS))[None, :]
        inside = (here < n) & (column < k)
        stored = tl.load(codes + here * width + column // PER, mask=inside, other=0).to(tl.int32)
        stored = (stored >> (column % PER * BITS)) & (2**BITS - 1)
        scale = tl.load(scales + here * groups + column // group, mask=inside, other=0).to(tl.float32)
        v = tl.load(x + i * k + column, mask=column < k, other=0).to(tl.float32)
        total += code_value(stored, BITS) * scale * v
    sums = tl.sum(total, 1)
    if bias is not None:
        sums += tl.load(bias + row, mask=row < n, other=0).to(tl.float32)
    tl.store(out + i * n + row, sums.to(out.dtype.element_ty), mask=row < n)


TILES = {torch.bfloat16: (64, 64, 4), torch.float16: (64, 64, 4), torch.float32: (64, 32, 4)}
"""Rows of x, rows of the weight, warps."""


@kernel(
    "int_linear",
    tune={
        "size": [4096, 8192, 16384],
        "wide": [512, 1024, 2048],
        "M": [16, 32, 64, 128],
        "N": [32, 64, 128],
        "num_warps": [4, 8],
    },
    fits="wide <= size",
)
def int_linear(x, codes, scales, bias, *, bits, group, out, size=8192, wide=512, M=0, N=0, num_warps=0):
    """`size`: codes that a program reads at once; `wide`: of one row."""
    (m, k), (n, groups), width = x.shape, scales.shape, codes.shape[1]
    if m == 0 or n == 0:
        return
    if group & (group - 1) or group < 32:
        if group < k or k == 0:
            _int_any[(cdiv(n, 16) * m,)](x, codes, scales, bias, out, n, k, width, group, groups, bits, 16, 128)
            return
        group = 1 << 30  # one scale for a row
    block = min(group, 128)
    count, parts = cdiv(k, block), group // block
    words = bits == 8 or (width > 0 and width % 4 == 0 and codes.data_ptr() % 4 == 0)
    if m == 1 and words:
        read = codes if bits == 8 else codes.view(torch.int32)
        BLOCKS = max(1, min(1 << max(0, count - 1).bit_length(), wide // block))
        _int_row[(cdiv(n, size // (BLOCKS * block)),)](
            x,
            read,
            scales,
            bias,
            out,
            n,
            k,
            read.shape[1],
            count,
            parts,
            groups,
            bits,
            size // (BLOCKS * block),
            BLOCKS,
            block,
            num_warps=num_warps or 4,
        )
        return
    rows, columns, warps = TILES[x.dtype]
    M, N = M or rows, N or columns
    while M > 16 and M >= 2 * m:
        M //= 2
    _int_tile[(cdiv(m, M) * cdiv(n, N),)](
        x,
        codes,
        scales,
        bias,
        out,
        m,
        n,
        k,
        width,
        count,
        parts,
        groups,
        bits,
        M,
        N,
        block,
        num_warps=num_warps or warps,
    )
