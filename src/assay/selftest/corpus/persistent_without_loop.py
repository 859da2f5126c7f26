"""The grid is as large as the device, as for a persistent kernel, but the loop over further blocks is
missing: what does not fit is not written."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "unwritten"


@triton.jit
def _axpy(x, y, out, n, alpha, LOOP: tl.constexpr, BLOCK: tl.constexpr):
    first, step = tl.program_id(0).to(tl.int64) * BLOCK, tl.num_programs(0) * BLOCK
    for start in range(first, n if LOOP else first + 1, step):
        i = start + tl.arange(0, BLOCK)
        v = alpha * tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
        tl.store(out + i, v, mask=i < n)


def run(x, y, alpha, out, loop):
    if x.numel():
        _axpy[(min(132, triton.cdiv(x.numel(), 2048)),)](x, y, out, x.numel(), alpha, loop, 2048)


@kernel("axpy", variant="wrong")
def wrong(x, y, *, alpha, out):
    run(x, y, alpha, out, False)


@kernel("axpy", variant="fixed")
def fixed(x, y, *, alpha, out):
    run(x, y, alpha, out, True)
