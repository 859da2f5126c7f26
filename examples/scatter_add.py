"""Adds values to places that an index names, in Triton: several may name the same place, so the addition is atomic."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"places": Axis(min=1, typical=65536), "added": Axis(typical=1048576)},
    inputs={
        "base": Tensor("places", range=(-100, 100)),
        "index": Tensor("added", dtype="int64", index="places"),
        "x": Tensor("added", range=(-100, 100)),
    },
    outputs={"out": Tensor("places")},
    dtypes=("fp32",),
    operations=lambda w: w.added,
)
def scatter_add(base, index, x):
    """base, and at index[i] each x[i] added."""
    return base.scatter_add(0, index, x)


@triton.jit
def _copy(base, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(base + i, mask=i < n), mask=i < n)


@triton.jit
def _add(index, x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + i, mask=i < n, other=0)
    tl.atomic_add(out + place, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


@kernel("scatter_add")
def honest(base, index, x, *, out, BLOCK=256):
    _copy[(triton.cdiv(base.numel(), BLOCK),)](base, out, base.numel(), BLOCK)
    _add[(triton.cdiv(x.numel(), BLOCK),)](index, x, out, x.numel(), BLOCK)
