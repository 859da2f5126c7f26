"""Loads first and asks for the bound afterwards: what is read beyond the end is thrown away, until
that page is not mapped."""

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "overread"
NEEDS = "gpu"
source = Source("overread_unnoticed.cu")


@kernel("silu", variant="wrong")
def wrong(x, *, out):
    source["silu<false>"](cdiv(x.numel(), 256), 256, x, out, x.numel())


@kernel("silu", variant="fixed")
def fixed(x, *, out):
    source["silu<true>"](cdiv(x.numel(), 256), 256, x, out, x.numel())
