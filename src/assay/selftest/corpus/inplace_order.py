"""The first step overwrites the output, the second still needs y: wrong as soon as the two are the
same memory."""

import torch

from assay import kernel

DETECTOR = "values"


@kernel("axpy", variant="wrong")
def wrong(x, y, *, alpha, out):
    torch.mul(x, alpha, out=out)
    out.add_(y)


@kernel("axpy", variant="fixed")
def fixed(x, y, *, alpha, out):
    torch.add(y, x, alpha=alpha, out=out)
