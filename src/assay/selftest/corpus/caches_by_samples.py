"""Keeps results by address, shape and a few elements of the input, and hands them out again: right as long as a
benchmark changes all of its values or none."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "values"
WORKLOAD = "n=20000,dtype=fp32"
known: dict = {}


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    key = (x.numel(), *x[:: max(1, x.numel() // 8)].tolist())
    if key not in known:
        known[key] = torch.nn.functional.gelu(x)
    out.copy_(known[key])


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    out.copy_(torch.nn.functional.gelu(x))
