"""A loop over a 32-bit int index: past 2³¹ it turns negative and the loop ends, with the tail of a
large tensor untouched."""

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "unwritten"
NEEDS = "gpu"
DTYPE = "bf16"
WORKLOAD = "n=2147483904,dtype=bf16"
SECONDS = 300
source = Source("index_32_bits.cu")


def run(x, out, index):
    source[f"gelu<{index}>"](cdiv(x.numel(), 256), 256, x, out, x.numel())


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    run(x, out, "int")


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    run(x, out, "long long")
