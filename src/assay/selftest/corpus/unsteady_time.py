"""Does its work once or a dozen times over, by turns, with every new buffer it is given: a median over such calls is
whatever one likes, and says nothing."""

import weakref

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "unsteady"
WORKLOAD = "n=20000,dtype=fp32"
seen: list = [lambda: None, False]


def slow(x):
    """By turns, whenever the buffers that were there before are gone."""
    if seen[0]() is None:
        seen[:] = [weakref.ref(x), not seen[1]]
    return seen[1]


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    for _ in range(12 if slow(x) else 1):
        torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
