"""The barrier stands inside `if (i < n)`: in the last block some threads never come to it, which today's
devices mostly forgive."""

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "sanitizer"
NEEDS = "sanitizer"
TOOL = "synccheck"
WORKLOAD = "n=1000,dtype=fp32"
source = Source("barrier_in_branch.cu")


@kernel("silu", variant="wrong")
def wrong(x, *, out):
    source["silu<false>"](cdiv(x.numel(), 256), 256, x, out, x.numel())


@kernel("silu", variant="fixed")
def fixed(x, *, out):
    source["silu<true>"](cdiv(x.numel(), 256), 256, x, out, x.numel())
