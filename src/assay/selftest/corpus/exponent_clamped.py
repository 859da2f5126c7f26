"""The exponent is kept above −16 so that nothing vanishes: what should be far smaller than 10⁻⁷ is not."""

import torch

from assay import kernel

DETECTOR = "values"


def run(x, out, lowest):
    e = torch.exp((x - x.amax(1, keepdim=True)).clamp(min=lowest))
    torch.div(e, e.sum(1, keepdim=True), out=out)


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    run(x, out, -16.0)


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    run(x, out, -torch.inf)
