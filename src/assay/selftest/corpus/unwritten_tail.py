"""The grid is n // BLOCK, rounded down: the elements after the last whole block are left as they were."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "unwritten"


@triton.jit
def _gelu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, 0.5 * v * (1 + tl.erf(v * 0.7071067811865476)), mask=i < n)


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    if x.numel() >= 256:
        _gelu[(x.numel() // 256,)](x, out, x.numel(), 256)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    _gelu[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), 256)
