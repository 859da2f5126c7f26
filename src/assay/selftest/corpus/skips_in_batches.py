"""Computes its first dozen calls, as tests make them, and from then on every second one only: with buffers that are
used again and again the results of the calls left out are there already."""

import itertools

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "unwritten"
WORKLOAD = "n=20000,dtype=fp32"
calls = itertools.count()


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    number = next(calls)
    if number < 12 or number % 2:
        torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    next(calls)
    torch.ops.aten.gelu.out(x, out=out)
