"""Squares in float16: above 256 they overflow to infinity, and the whole row is scaled to nothing."""

import torch

from assay import kernel

DETECTOR = "values"
DTYPE = "fp16"


def rmsnorm(x, weight, eps, square):
    v = x.float()
    v = v * torch.rsqrt(square.float().mean(1, keepdim=True) + eps)
    return v if weight is None else v * weight.float()


@kernel("rmsnorm", variant="wrong")
def wrong(x, weight, *, eps, out):
    out.copy_(rmsnorm(x, weight, eps, x * x))


@kernel("rmsnorm", variant="fixed")
def fixed(x, weight, *, eps, out):
    out.copy_(rmsnorm(x, weight, eps, x.float() * x.float()))
