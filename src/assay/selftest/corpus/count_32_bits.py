"""The number of elements travels as a 32-bit int: from 2³¹ on it is negative, and every thread finds
itself beyond the end."""

import ctypes

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "unwritten"
NEEDS = "gpu"
DTYPE = "bf16"
WORKLOAD = "n=2147483904,dtype=bf16"
SECONDS = 300
source = Source("count_32_bits.cu")


def run(x, out, count, convert):
    source[f"gelu<{count}>"](cdiv(x.numel(), 256), 256, x, out, convert(x.numel()))


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    run(x, out, "int", ctypes.c_int32)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    run(x, out, "long long", ctypes.c_int64)
