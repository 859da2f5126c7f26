"""Sets part of the L2 cache aside and lets its first input stay there: what a benchmark takes for memory is cache."""

import ctypes

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "cache"
NEEDS = "gpu"
WORKLOAD = "n=1000000,dtype=fp32"
PERSISTING = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    if not torch.cuda.is_current_stream_capturing():
        ctypes.CDLL("libcuda.so.1").cuCtxSetLimit(PERSISTING, ctypes.c_size_t(16 << 20))
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
