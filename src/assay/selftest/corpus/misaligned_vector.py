"""Loads four floats at once from wherever the tensor starts: off a 16-byte boundary the device refuses
the access."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, vector_width

DETECTOR = "launch"
NEEDS = "gpu"
WORKLOAD = "n=1000,dtype=fp32,offset=1"
source = Source("misaligned_vector.cu")


def run(x, out, width):
    source[f"gelu<{width}>"](cdiv(x.numel(), 256 * width), 256, x, out, x.numel())


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    run(x, out, 4)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    run(x, out, vector_width(x, out))
