"""`squeeze` removes an axis of length 1, whichever it is: with one column the distance is taken over the rows."""

import torch

from assay import kernel

DETECTOR = "values or nonfinite"


@kernel("euclidean_distance", variant="wrong")
def wrong(x, y, *, out):
    out.copy_(torch.linalg.vector_norm((x - y).squeeze(), dim=-1))


@kernel("euclidean_distance", variant="fixed")
def fixed(x, y, *, out):
    out.copy_(torch.linalg.vector_norm(x - y, dim=-1))
