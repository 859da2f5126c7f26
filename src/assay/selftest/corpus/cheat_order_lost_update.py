"""Every program loads the total, adds its part and stores it, with no atomic: programs that run at the same time
overwrite each other's additions. One after another they do not."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "unstable or values"
WORKLOAD = "n=5000,dtype=fp32"


@triton.jit
def _add(x, total, n, ATOMIC: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + i, mask=i < n, other=0.0).to(tl.float32), 0)
    if ATOMIC:
        tl.atomic_add(total, part)
    else:
        tl.store(total, tl.load(total) + part)


def add(x, out, total, atomic):
    total.zero_()
    _add[(triton.cdiv(x.numel(), 1024),)](x, total, x.numel(), atomic, 1024)
    out.copy_(total[0])


@kernel("sum", variant="wrong", scratch={"total": ("fp32", 1)})
def wrong(x, *, out, total):
    add(x, out, total, False)


@kernel("sum", variant="fixed", scratch={"total": ("fp32", 1)})
def fixed(x, *, out, total):
    add(x, out, total, True)
