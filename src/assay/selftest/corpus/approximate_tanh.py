"""The hardware's tanh is a single instruction and good to eleven bits, which is enough for half precision only."""

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "values"
NEEDS = "gpu"
source = Source("approximate_tanh.cu")


@kernel("gelu_tanh", variant="wrong")
def wrong(x, *, out):
    source["gelu_tanh<true>"](cdiv(x.numel(), 256), 256, x, out, x.numel())


@kernel("gelu_tanh", variant="fixed")
def fixed(x, *, out):
    source["gelu_tanh<false>"](cdiv(x.numel(), 256), 256, x, out, x.numel())
