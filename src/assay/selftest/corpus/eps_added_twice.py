"""The helper adds eps to the variance it returns, and so does its caller: only rows of nearly equal
values show it."""

import torch
from torch.nn.functional import gelu

from assay import kernel

DETECTOR = "values"


def variance(v, eps):
    return (v - v.mean(1, keepdim=True)).square().mean(1, keepdim=True) + eps


def run(x, weight, bias, out, spread):
    v = (x.double() - x.double().mean(1, keepdim=True)) * torch.rsqrt(spread)
    v = v if weight is None else v * weight
    out.copy_(gelu(v if bias is None else v + bias))


@kernel("ln_gelu", variant="wrong")
def wrong(x, weight, bias, *, eps, out):
    run(x, weight, bias, out, variance(x.double(), eps) + eps)


@kernel("ln_gelu", variant="fixed")
def fixed(x, weight, bias, *, eps, out):
    run(x, weight, bias, out, variance(x.double(), eps))
