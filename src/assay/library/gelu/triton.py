"""GELU in Triton: `tiles` of BLOCK elements for each program, arithmetic in float32. Results of 16 bits have a shorter
formula."""

import triton
import triton.language as tl

from assay import kernel
from assay.library.short_float import short_gelu, short_gelu_slope, short_gelu_tanh


@triton.jit
def _phi(v, TANH: tl.constexpr):
    if TANH:  # ½(1 + tanh u) is σ(2u), which keeps its bits where the tanh is near −1
        return 1 / (1 + tl.exp(-1.5957691216057308 * (v + 0.044715 * v * v * v)))
    return 0.5 * (1 + tl.erf(v * 0.7071067811865476))


@triton.jit
def _gelu(
    x, y, n, TANH: tl.constexpr, BLOCK: tl.constexpr, TILES: tl.constexpr, STAGES: tl.constexpr,
    LOAD: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    for t in tl.range(TILES, num_stages=STAGES):  # with stages the next tiles are loaded while one is computed
        i = (tl.program_id(0).to(tl.int64) * TILES + t) * BLOCK + tl.arange(0, BLOCK)  # 64-bit: n may exceed 2**31
        v = tl.load(x + i, mask=i < n, eviction_policy=LOAD).to(tl.float32)
        if y.dtype.element_ty == tl.float32:
            v *= _phi(v, TANH)
        else:
            v = short_gelu_tanh(v) if TANH else short_gelu(v)
        tl.store(y + i, v.to(y.dtype.element_ty), mask=i < n, cache_modifier=STORE)


@triton.jit
def _gelu_backward(dy, x, dx, n, TANH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    if TANH:
        w = 1.5957691216057308 * (v + 0.044715 * v * v * v)
        e = tl.exp(-tl.abs(w))  # σ(w) and σ(w)·σ(−w) from e keep their bits on both sides
        phi = tl.where(w >= 0, 1, e) / (1 + e)
        bell = e / ((1 + e) * (1 + e)) * 1.5957691216057308 * (1 + 0.134145 * v * v)
        slope = phi + tl.where(e == 0, 0.0, v * bell)  # far out 0·v³ would be NaN
    elif dx.dtype.element_ty == tl.float32:
        slope = _phi(v, TANH) + v * tl.exp(-0.5 * v * v) * 0.3989422804014327
    else:
        slope = short_gelu_slope(v)
    g = tl.load(dy + i, mask=i < n).to(tl.float32)
    tl.store(dx + i, (g * slope).to(dx.dtype.element_ty), mask=i < n)


TUNE = {
    "BLOCK": [512, 1024, 2048, 4096, 8192],
    "num_warps": [1, 2, 4, 8, 16],
    "tiles": [1, 2, 4],
    "stages": [1, 2],
    "load": ["", "evict_first"],
    "store": ["", ".cs"],
}
FITS = "4 * 32 * num_warps <= BLOCK <= 32 * 32 * num_warps and stages <= tiles and (stages == 1 or not load)"


@kernel(
    "gelu",
    tune=TUNE,
    fits=FITS,
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def gelu(x, *, out, BLOCK=1024, num_warps=4, tiles=1, stages=1, load="", store=""):
    _gelu[(triton.cdiv(x.numel(), BLOCK * tiles),)](
        x, out, x.numel(), False, BLOCK, tiles, stages, load, store, num_warps=num_warps
    )


@kernel(
    "gelu_tanh",
    tune=TUNE,
    fits=FITS,
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def gelu_tanh(x, *, out, BLOCK=1024, num_warps=4, tiles=1, stages=1, load="", store=""):
    _gelu[(triton.cdiv(x.numel(), BLOCK * tiles),)](
        x, out, x.numel(), True, BLOCK, tiles, stages, load, store, num_warps=num_warps
    )


@kernel(
    "gelu_backward",
    tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def gelu_backward(dy, x, *, out, BLOCK=1024, num_warps=4):
    _gelu_backward[(triton.cdiv(x.numel(), BLOCK),)](dy, x, out, x.numel(), False, BLOCK, num_warps=num_warps)


@kernel(
    "gelu_tanh_backward",
    tune={"BLOCK": [512, 1024, 2048, 4096], "num_warps": [4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 40},
)
def gelu_tanh_backward(dy, x, *, out, BLOCK=1024, num_warps=4):
    _gelu_backward[(triton.cdiv(x.numel(), BLOCK),)](dy, x, out, x.numel(), True, BLOCK, num_warps=num_warps)
