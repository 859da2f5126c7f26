"""2^f of the fraction by a cubic polynomial, to relieve the special function units: 10⁻⁴ off, which
only bfloat16 forgives."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "values"


@triton.jit
def _silu(x, y, n, EXACT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    if EXACT:
        e = tl.exp(-v)
    else:
        power = tl.minimum(tl.maximum(-v * 1.4426950408889634, -126.0), 127.0)
        whole = tl.floor(power)
        f = power - whole
        e = ((whole.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)
        e *= 1 + f * (0.69592 + f * (0.22492 + f * 0.07916))
    tl.store(y + i, tl.where(v != v, v, v / (1 + e)), mask=i < n)


@kernel("silu", variant="wrong")
def wrong(x, *, out):
    _silu[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), False, 4096)


@kernel("silu", variant="fixed")
def fixed(x, *, out):
    _silu[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), True, 4096)
