"""Where each value belongs in a sorted list, in Triton: a binary search in every lane, all of the same length."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"n": Axis(min=1, max=2**30, typical=65536), "m": Axis(typical=1048576)},
    inputs={"edges": Tensor("n", form="sorted", specials=()), "x": Tensor("m", specials=())},
    outputs={"out": Tensor("m", dtype="int64")},
    operations=lambda w: w.m * max(1, w.n.bit_length()),
)
def searchsorted(edges, x):
    """The number of edges less than x: the leftmost place that keeps the order."""
    import torch

    return torch.searchsorted(edges, x)


@triton.jit
def _search(edges, x, out, n, m, steps, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < m, other=0.0).to(tl.float32)
    low = tl.zeros((BLOCK,), tl.int64)
    high = tl.zeros((BLOCK,), tl.int64) + n
    for _ in range(steps):
        middle = (low + high) // 2
        searching = (low < high) & (i < m)
        less = tl.load(edges + middle, mask=searching, other=0.0).to(tl.float32) < v
        low = tl.where(searching & less, middle + 1, low)
        high = tl.where(searching & ~less, middle, high)
    tl.store(out + i, low, mask=i < m)


@kernel("searchsorted")
def honest(edges, x, *, out, BLOCK=512):
    n, m = edges.numel(), x.numel()
    _search[(triton.cdiv(m, BLOCK),)](edges, x, out, n, m, n.bit_length(), BLOCK)
