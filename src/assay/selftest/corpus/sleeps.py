"""Waits for a signal that nobody sends, as a kernel does that spins on a flag another block should set."""

import threading

import torch

from assay import kernel

DETECTOR = "timeout"
WORKLOAD = "n=1000,dtype=fp32"
SECONDS = 5


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    threading.Event().wait()


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
