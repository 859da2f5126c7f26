"""Loads are made aligned by rounding the address down to 16 bytes: a tensor that starts elsewhere is
read from before it."""

import torch

from assay import kernel

DETECTOR = "overread"


def gelu(x, out):
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    past = x.data_ptr() % 16 // x.element_size()
    gelu(x.as_strided(x.shape, x.stride(), x.storage_offset() - past), out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    gelu(x, out)
