"""One configuration writes only half of its output. A tuner whose configurations share one output buffer finds the rest
there, written by the configuration before it, and takes the fastest one for right (triton-lang/triton#9230)."""

import torch

from assay import kernel

VERB = "tune"
DETECTOR = "unwritten or values"
WORKLOAD = "n=30000,dtype=fp32"


@kernel("gelu", variant="wrong", backend="torch", tune={"parts": [1, 2]})
def wrong(x, *, out, parts=1):
    end = x.numel() // parts
    torch.ops.aten.gelu.out(x[:end], out=out[:end])


@kernel("gelu", variant="fixed", backend="torch", tune={"parts": [1, 2]})
def fixed(x, *, out, parts=1):
    size = -(-x.numel() // parts)
    for first in range(0, x.numel(), max(1, size)):
        torch.ops.aten.gelu.out(x[first : first + size], out=out[first : first + size])
