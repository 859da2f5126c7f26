"""The bounds are declared as integers, since −2 and 2 were the only ones ever used: 0.7 becomes 0."""

import torch

from assay import kernel

DETECTOR = "values"


@kernel("normalize_clip", variant="wrong")
def wrong(x, *, mean, std, low, high, out):
    torch.clamp((x - mean) / std, int(low), int(high), out=out)


@kernel("normalize_clip", variant="fixed")
def fixed(x, *, mean, std, low, high, out):
    torch.clamp((x - mean) / std, low, high, out=out)
