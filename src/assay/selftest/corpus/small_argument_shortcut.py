"""Near zero, x/2 instead of the whole formula: the next term is forgotten, which one unit normal in a
hundred shows, by half a percent."""

import torch

from assay import kernel

DETECTOR = "values"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
    torch.where(x.abs() < 0.01, 0.5 * x, out, out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
