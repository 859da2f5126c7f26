"""`<=` instead of `<`: a value that equals an edge is put behind it."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _search(edges, x, out, n, m, steps, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < m, other=0.0).to(tl.float32)
    low = tl.zeros((BLOCK,), tl.int64)
    high = tl.zeros((BLOCK,), tl.int64) + n
    for _ in range(steps):
        middle = (low + high) // 2
        searching = (low < high) & (i < m)
        less = tl.load(edges + middle, mask=searching, other=0.0).to(tl.float32) <= v  # Wrong: <.
        low = tl.where(searching & less, middle + 1, low)
        high = tl.where(searching & ~less, middle, high)
    tl.store(out + i, low, mask=i < m)


@kernel("../searchsorted.py:searchsorted")
def right_of_equals(edges, x, *, out, BLOCK=512):
    n, m = edges.numel(), x.numel()
    _search[(triton.cdiv(m, BLOCK),)](edges, x, out, n, m, n.bit_length(), BLOCK)
