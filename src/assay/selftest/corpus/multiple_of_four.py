"""Views the input as rows of four, which raises for every size that is not a multiple of it."""

import torch

from assay import kernel

DETECTOR = "exception"


@kernel("silu", variant="wrong")
def wrong(x, *, out):
    torch.ops.aten.silu.out(x.view(-1, 4), out=out.view(-1, 4))


@kernel("silu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.silu.out(x, out=out)
