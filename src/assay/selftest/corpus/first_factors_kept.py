"""A table of the factors is built once per size, as a constant would be: later calls with other factors
of the same size get the old ones."""

import torch

from assay import kernel

DETECTOR = "values or stale or unwritten"
tables: dict = {}


@kernel("row_scale", variant="wrong")
def wrong(x, scale, *, out):
    torch.mul(x, tables.setdefault(tuple(x.shape), scale[:, None].clone()), out=out)


@kernel("row_scale", variant="fixed")
def fixed(x, scale, *, out):
    torch.mul(x, scale[:, None], out=out)
