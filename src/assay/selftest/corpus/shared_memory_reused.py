"""A block goes on to its next row without waiting for the warps that still read the partial sums of this one: right in
every call, until one warp is late by a whole row."""

from assay import kernel
from assay.backends.cuda import Source

DETECTOR = "race"
NEEDS = "sanitizer"
DTYPE = "fp32"
source = Source("shared_memory_reused.cu")


@kernel("rmsnorm", variant="wrong", dtypes=["fp32"])
def wrong(x, weight, *, eps, out):
    _launch("rmsnorm<false>", x, weight, eps, out)


@kernel("rmsnorm", variant="fixed", dtypes=["fp32"])
def fixed(x, weight, *, eps, out):
    _launch("rmsnorm<true>", x, weight, eps, out)


def _launch(name, x, weight, eps, out):
    x = x.contiguous()
    source[name](min(x.shape[0], 264), 256, x, weight, out, *x.shape, eps)
