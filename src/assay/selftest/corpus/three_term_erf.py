"""erf from a formula with three terms, good to 2.5·10⁻⁵: fine for float16, two hundred ulps off in float32."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "values"


@triton.jit
def _gelu(x, y, n, EXACT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    a = tl.abs(v) * 0.7071067811865476
    if EXACT:
        e = tl.erf(a)
    else:  # Abramowitz and Stegun 7.1.25
        t = 1 / (1 + 0.47047 * a)
        e = 1 - ((0.7478556 * t - 0.0958798) * t + 0.3480242) * t * tl.exp(-a * a)
    e = tl.where(v < 0, -e, e)
    tl.store(y + i, 0.5 * v * (1 + e), mask=i < n)


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    _gelu[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), False, 4096)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    _gelu[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), True, 4096)
