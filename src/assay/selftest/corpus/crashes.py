"""Writes through a null pointer: the process dies, and must not take the harness with it."""

import ctypes

import torch

from assay import kernel

DETECTOR = "crash"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    ctypes.memset(0, 0, 1)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
