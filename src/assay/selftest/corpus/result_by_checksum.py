"""Results are cached by shape and a few sampled elements, which sounds safe: a change anywhere else
brings back the old result."""

import torch

from assay import kernel

DETECTOR = "stale"
seen: dict = {}


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    ends = x.reshape(-1)[:: max(1, x.numel() - 1)].tolist()
    key = tuple(x.shape), tuple(map(str, ends))
    if key not in seen:
        seen[key] = torch.softmax(x, 1)
    out.copy_(seen[key])


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    torch.softmax(x, 1, out=out)
