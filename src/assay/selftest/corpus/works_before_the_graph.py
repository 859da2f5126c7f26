"""Puts its work off while its calls become a graph, and does it in the next call that is launched, which is not timed:
the graph is empty."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "early"
NEEDS = "gpu"
WORKLOAD = "n=20000,dtype=fp32"
waiting: list = []


def gelu(x, out):
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    waiting.append((x, out))
    if not torch.cuda.is_current_stream_capturing():
        for values, result in waiting:
            gelu(values, result)
        waiting.clear()


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    gelu(x, out)
