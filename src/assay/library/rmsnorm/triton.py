"""RMSNorm in Triton: a tile of whole rows in registers; longer rows read twice, to sum and to write, few of them cut
into parts."""

import triton
import triton.language as tl

from assay import kernel
from assay.library.layernorm.triton import _load, cut, full, tile


@triton.jit
def _rmsnorm_kept(
    x, weight, y, rows, cols, stride, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr, FULL: tl.constexpr,
    TILES: tl.constexpr, STAGES: tl.constexpr, LOAD: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    c = tl.arange(0, BLOCK)[None, :]
    for t in tl.range(TILES, num_stages=STAGES):  # with stages the next tiles are loaded while one is computed
        first = (tl.program_id(0).to(tl.int64) * TILES + t) * ROWS  # 64-bit: offsets may exceed 2**31
        row = (first + tl.arange(0, ROWS))[:, None]
        inside = (row < rows) & (c < cols)
        if FULL:
            v = tl.load(x + row * stride + c, eviction_policy=LOAD).to(tl.float32)
        else:
            v = tl.load(x + row * stride + c, mask=inside, other=0, eviction_policy=LOAD).to(tl.float32)
        v *= tl.rsqrt(tl.sum(v * v, 1) / cols + eps)[:, None]
        if weight is not None:
            v *= _load(weight + c, c < cols, FULL)
        if FULL:
            tl.store(y + row * cols + c, v.to(y.dtype.element_ty), cache_modifier=STORE)
        else:
            tl.store(y + row * cols + c, v.to(y.dtype.element_ty), mask=inside, cache_modifier=STORE)


@triton.jit
def _rmsnorm_long(x, weight, y, cols, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        v = tl.load(x + row * stride + start + c, mask=start + c < cols, other=0).to(tl.float32)
        squares += v * v
    rstd = tl.rsqrt(tl.sum(squares, 0) / cols + eps)
    for start in range(0, cols, BLOCK):
        v = tl.load(x + row * stride + start + c, mask=start + c < cols, other=0).to(tl.float32) * rstd
        if weight is not None:
            v *= tl.load(weight + start + c, mask=start + c < cols, other=0).to(tl.float32)
        tl.store(y + row * cols + start + c, v.to(y.dtype.element_ty), mask=start + c < cols)


@triton.jit
def _part_squares(x, seen, cols, stride, parts, PART: tl.constexpr):
    """The sum of squares of each part of each row."""
    row = (tl.program_id(0) // parts).to(tl.int64)
    c = tl.program_id(0) % parts * PART + tl.arange(0, PART)
    v = tl.load(x + row * stride + c, mask=c < cols, other=0, eviction_policy="evict_last").to(tl.float32)
    tl.store(seen + tl.program_id(0), tl.sum(v * v, 0))


@triton.jit
def _rmsnorm_parts(x, weight, y, seen, cols, stride, parts, eps, PART: tl.constexpr, PARTS: tl.constexpr):
    row = (tl.program_id(0) // parts).to(tl.int64)
    c = tl.program_id(0) % parts * PART + tl.arange(0, PART)
    p = tl.arange(0, PARTS)
    squares = tl.sum(tl.load(seen + row * parts + p, mask=p < parts, other=0), 0)
    v = tl.load(x + row * stride + c, mask=c < cols, other=0, eviction_policy="evict_first").to(tl.float32)
    v *= tl.rsqrt(squares / cols + eps)
    if weight is not None:
        v *= tl.load(weight + c, mask=c < cols, other=0).to(tl.float32)
    tl.store(y + row * cols + c, v.to(y.dtype.element_ty), mask=c < cols)


FITS = (
    "(keep == 32768 or cols > 8192) and (size == 1024 or size >= 2 * cols) and 32 * elements <= max(size, cols)"
    " and stages <= tiles and (stages == 1 or not load)"
)
"""Without what makes no difference: `keep` for rows that are kept anyway, a `size` that one row exceeds."""


@kernel(
    "rmsnorm",
    scratch={"seen": ("fp32", 4096)},
    tune={
        "keep": [8192, 16384, 32768],
        "size": [1024, 2048, 4096],
        "elements": [4, 8, 16, 32, 64],
        "tiles": [1, 2, 4],
        "stages": [1, 2],
        "load": ["", "evict_first"],
        "store": ["", ".cs"],
    },
    fits=FITS,
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 64},
)
def rmsnorm(
    x, weight, *, eps, out, seen, keep=32768, size=1024, elements=16, tiles=1, stages=1, load="", store=""
):  # fmt: skip
    rows, cols = x.shape
    if cols <= keep:
        ROWS, BLOCK, warps = tile(cols, size, elements)
        FULL = full(rows, cols, ROWS * tiles, BLOCK)
        _rmsnorm_kept[(triton.cdiv(rows, ROWS * tiles),)](
            x, weight, out, rows, cols, x.stride(0), eps, ROWS, BLOCK, FULL, tiles, stages, load, store, num_warps=warps
        )
    elif parts := cut(rows, cols):
        whole = {"PART": 8192, "PARTS": triton.next_power_of_2(parts), "num_warps": 8}
        _part_squares[(rows * parts,)](x, seen, cols, x.stride(0), parts, PART=8192, num_warps=8)
        _rmsnorm_parts[(rows * parts,)](x, weight, out, seen, cols, x.stride(0), parts, eps, **whole)
    else:
        _rmsnorm_long[(rows,)](x, weight, out, cols, x.stride(0), eps, BLOCK=4096, num_warps=8)
