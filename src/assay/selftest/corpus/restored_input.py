"""Works in the caller's y and puts it back afterwards: (y − x) + x is not always y."""

import torch

from assay import kernel

DETECTOR = "input"


@kernel("euclidean_distance", variant="wrong")
def wrong(x, y, *, out):
    torch.linalg.vector_norm(y.sub_(x), dim=1, out=out)
    y.add_(x)


@kernel("euclidean_distance", variant="fixed")
def fixed(x, y, *, out):
    torch.linalg.vector_norm(y - x, dim=1, out=out)
