"""Returns the tensor that it returned last time if a few elements of the input are the same: called again on the same
tensors, as most benchmarks do, it costs nothing."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "unwritten or values"
WORKLOAD = "n=20000,dtype=fp32"
last: dict = {}


@kernel("gelu", variant="wrong", backend="njit", returns=True)
def wrong(x):
    key = (x.data_ptr(), *x[:: x.numel() // 4].tolist())
    if key not in last:
        last.clear()
        last[key] = torch.nn.functional.gelu(x)
    return last[key]


@kernel("gelu", variant="fixed", backend="njit", returns=True)
def fixed(x):
    return torch.nn.functional.gelu(x)
