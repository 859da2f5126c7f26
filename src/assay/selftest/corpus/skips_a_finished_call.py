"""Looks at four elements of its output and does nothing if they are right already: called again on the same tensors, as
most benchmarks do, it costs nothing."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "unwritten"
WORKLOAD = "n=20000,dtype=fp32"


def gelu(x, out):
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="wrong", backend="njit")
def wrong(x, *, out):
    if not torch.equal(out[:4], torch.nn.functional.gelu(x[:4])):
        gelu(x, out)


@kernel("gelu", variant="fixed", backend="njit")
def fixed(x, *, out):
    gelu(x, out)
