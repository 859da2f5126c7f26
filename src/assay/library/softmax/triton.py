"""Softmax in Triton: a tile of whole rows in registers; longer rows read twice, online and to write, few of them cut
into parts."""

import triton
import triton.language as tl

from assay import kernel
from assay.library.layernorm.triton import cut, full, tile


# tl.max drops NaN; the sum of exponentials brings it back, so a NaN makes its whole row NaN.
@triton.jit
def _softmax_kept(
    x, y, rows, cols, stride, ROWS: tl.constexpr, BLOCK: tl.constexpr, FULL: tl.constexpr,
    TILES: tl.constexpr, STAGES: tl.constexpr, LOAD: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    c = tl.arange(0, BLOCK)[None, :]
    for t in tl.range(TILES, num_stages=STAGES):  # with stages the next tiles are loaded while one is computed
        first = (tl.program_id(0).to(tl.int64) * TILES + t) * ROWS  # 64-bit: offsets may exceed 2**31
        row = (first + tl.arange(0, ROWS))[:, None]
        inside = (row < rows) & (c < cols)
        at = x + row * stride + c
        if FULL:  # a mask would cost a register and an instruction for every word
            v = tl.load(at, eviction_policy=LOAD).to(tl.float32)
        else:
            v = tl.load(at, mask=inside, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
        e = tl.exp(v - tl.max(v, 1)[:, None])
        p = (e * (1 / tl.sum(e, 1)[:, None])).to(y.dtype.element_ty)  # one division a row, not one an element
        if FULL:
            tl.store(y + row * cols + c, p, cache_modifier=STORE)
        else:
            tl.store(y + row * cols + c, p, mask=inside, cache_modifier=STORE)


@triton.jit
def _softmax_online(x, y, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    top = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        v = tl.load(x + row * stride + start + c, mask=start + c < cols, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(v, 0))
        base = tl.where(higher == -float("inf"), 0.0, higher)  # only −∞ so far: −∞ − −∞ would be NaN
        total = total * tl.exp(top - base) + tl.sum(tl.exp(v - base), 0)
        top = higher
    for start in range(0, cols, BLOCK):
        v = tl.load(x + row * stride + start + c, mask=start + c < cols, other=-float("inf")).to(tl.float32)
        p = tl.exp(v - top) / total
        tl.store(y + row * cols + start + c, p.to(y.dtype.element_ty), mask=start + c < cols)


@triton.jit
def _softmax_part(x, seen, cols, stride, parts, PART: tl.constexpr):
    """Of each part of each row: its maximum, and the sum of e^(x − maximum)."""
    row = (tl.program_id(0) // parts).to(tl.int64)
    c = tl.program_id(0) % parts * PART + tl.arange(0, PART)
    v = tl.load(x + row * stride + c, mask=c < cols, other=-float("inf"), eviction_policy="evict_last").to(tl.float32)
    top = tl.max(v, 0)
    base = tl.where(top == -float("inf"), 0.0, top)  # a part of −∞ alone adds nothing; −∞ − −∞ would be NaN
    tl.store(seen + 2 * tl.program_id(0), top)
    tl.store(seen + 2 * tl.program_id(0) + 1, tl.sum(tl.exp(v - base), 0))


@triton.jit
def _softmax_parts(x, y, seen, cols, stride, parts, PART: tl.constexpr, PARTS: tl.constexpr):
    row = (tl.program_id(0) // parts).to(tl.int64)
    c = tl.program_id(0) % parts * PART + tl.arange(0, PART)
    p = tl.arange(0, PARTS)
    tops = tl.load(seen + 2 * (row * parts + p), mask=p < parts, other=-float("inf"))
    totals = tl.load(seen + 2 * (row * parts + p) + 1, mask=p < parts, other=0)
    top = tl.max(tops, 0)
    scale = 1 / tl.sum(totals * tl.exp(tops - top), 0)
    v = tl.load(x + row * stride + c, mask=c < cols, other=0, eviction_policy="evict_first").to(tl.float32)
    tl.store(y + row * cols + c, (tl.exp(v - top) * scale).to(y.dtype.element_ty), mask=c < cols)


FITS = (
    "(keep == 32768 or cols > 8192) and (size == 1024 or size >= 2 * cols) and 32 * elements <= max(size, cols)"
    " and stages <= tiles and (stages == 1 or not load)"
)
"""Without what makes no difference: `keep` for rows that are kept anyway, a `size` that one row exceeds."""


@kernel(
    "softmax",
    scratch={"seen": ("fp32", 8192)},
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
def softmax(x, *, out, seen, keep=32768, size=1024, elements=16, tiles=1, stages=1, load="", store=""):
    rows, cols = x.shape
    if cols <= keep:
        ROWS, BLOCK, warps = tile(cols, size, elements)
        FULL = full(rows, cols, ROWS * tiles, BLOCK)
        _softmax_kept[(triton.cdiv(rows, ROWS * tiles),)](
            x, out, rows, cols, x.stride(0), ROWS, BLOCK, FULL, tiles, stages, load, store, num_warps=warps
        )
    elif parts := cut(rows, cols):
        whole = {"PART": 8192, "PARTS": triton.next_power_of_2(parts), "num_warps": 8}
        _softmax_part[(rows * parts,)](x, seen, cols, x.stride(0), parts, PART=8192, num_warps=8)
        _softmax_parts[(rows * parts,)](x, out, seen, cols, x.stride(0), parts, **whole)
    else:
        _softmax_online[(rows,)](x, out, cols, x.stride(0), BLOCK=4096, num_warps=8)
