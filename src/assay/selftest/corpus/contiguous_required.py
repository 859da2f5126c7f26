"""`view` needs packed rows; given a slice of a wider matrix it raises, and the op promises slices."""

import torch

from assay import kernel

DETECTOR = "exception"


def run(flat, cols, weight, eps, out):
    v = flat.view(-1, cols)
    v = v * torch.rsqrt(v.square().mean(1, keepdim=True) + eps)
    out.copy_(v if weight is None else v * weight)


@kernel("rmsnorm", variant="wrong")
def wrong(x, weight, *, eps, out):
    run(x.view(-1), x.shape[1], weight, eps, out)


@kernel("rmsnorm", variant="fixed")
def fixed(x, weight, *, eps, out):
    run(x.reshape(-1), x.shape[1], weight, eps, out)
