"""The mean is the mean of the means of chunks of 512 columns: wrong by the weight of the last chunk,
where that is shorter."""

import torch

from assay import kernel

DETECTOR = "values"


def average(v, weighted):
    chunks = v.split(512, 1)
    means = torch.stack([c.mean(1) for c in chunks], 1)
    if not weighted:
        return means.mean(1)
    return (means * torch.tensor([c.shape[1] for c in chunks], device=v.device)).sum(1) / v.shape[1]


def run(x, out, var, weighted):
    mean = average(x.double(), weighted)
    out.copy_(mean)
    var.copy_(average((x.double() - mean[:, None]).square(), weighted))


@kernel("mean_var", variant="wrong")
def wrong(x, *, out, var):
    run(x, out, var, False)


@kernel("mean_var", variant="fixed")
def fixed(x, *, out, var):
    run(x, out, var, True)
