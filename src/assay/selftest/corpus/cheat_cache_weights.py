"""Prepares the weights once and keeps them by address, as inference code does: weights that were trained on
in the meantime stay the old ones."""

import torch

from assay import kernel

DETECTOR = "stale or values"
WORKLOAD = "rows=6,cols=64,dtype=fp32"
prepared: dict = {}


def norm(x, eps):
    mean = x.mean(1, keepdim=True)
    return (x - mean) * torch.rsqrt((x - mean).square().mean(1, keepdim=True) + eps)


@kernel("layernorm", variant="wrong")
def wrong(x, weight, bias, *, eps, out):
    key = x.data_ptr()
    if key not in prepared:
        prepared[key] = (weight.clone(), bias.clone(), norm(x, eps), x.clone())
    weight, bias, normal, old = prepared[key]
    normal = normal if torch.equal(old, x) else norm(x, eps)
    out.copy_(normal * weight + bias)


@kernel("layernorm", variant="fixed")
def fixed(x, weight, bias, *, eps, out):
    out.copy_(norm(x, eps) * weight + bias)
