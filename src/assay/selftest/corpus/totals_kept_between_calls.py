"""The buffer of row totals is kept per shape to save an allocation, and added to without being cleared:
the first call is right."""

import torch

from assay import kernel

DETECTOR = "values or unstable or stale"
buffers: dict = {}


def run(x, y, out, clear):
    squares = buffers.setdefault(tuple(x.shape), x.new_zeros(x.shape[0], dtype=torch.float64))
    if clear:
        squares.zero_()
    squares += (x.double() - y).square().sum(1)
    out.copy_(squares.sqrt())


@kernel("euclidean_distance", variant="wrong")
def wrong(x, y, *, out):
    run(x, y, out, False)


@kernel("euclidean_distance", variant="fixed")
def fixed(x, y, *, out):
    run(x, y, out, True)
