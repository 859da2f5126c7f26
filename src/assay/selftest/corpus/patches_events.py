"""Replaces the method of CUDA events that says how much time lies between two of them."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "tampered"
NEEDS = "gpu"
WORKLOAD = "n=1000000,dtype=fp32"


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    if torch.cuda.Event.elapsed_time.__name__ == "elapsed_time":
        elapsed = torch.cuda.Event.elapsed_time
        torch.cuda.Event.elapsed_time = lambda start, end: elapsed(start, end) / 100
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
