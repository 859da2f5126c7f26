"""Asks PyTorch for more threads than the benchmark gave it, and is compared with kernels that kept to theirs."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "settings"
WORKLOAD = "n=20000,dtype=fp32"


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    torch.set_num_threads(8)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
