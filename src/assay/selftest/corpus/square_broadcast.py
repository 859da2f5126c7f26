"""The axis of the factors is guessed from their number: for a square matrix both guesses fit, and the
wrong one comes first."""

import torch

from assay import kernel

DETECTOR = "values"


@kernel("row_scale", variant="wrong")
def wrong(x, scale, *, out):
    torch.mul(x, scale if scale.numel() == x.shape[1] == x.shape[0] else scale[:, None], out=out)


@kernel("row_scale", variant="fixed")
def fixed(x, scale, *, out):
    torch.mul(x, scale[:, None], out=out)
