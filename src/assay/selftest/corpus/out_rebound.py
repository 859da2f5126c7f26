"""`out = …` gives the name to a new tensor and leaves the caller's as it was."""

import torch

from assay import kernel

DETECTOR = "unwritten"


@kernel("row_scale", variant="wrong")
def wrong(x, scale, *, out):
    out = torch.mul(x, scale[:, None])  # noqa: F841


@kernel("row_scale", variant="fixed")
def fixed(x, scale, *, out):
    torch.mul(x, scale[:, None], out=out)
