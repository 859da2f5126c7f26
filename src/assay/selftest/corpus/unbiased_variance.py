"""`Tensor.var` divides by cols − 1 unless told otherwise; a norm divides by cols."""

import torch

from assay import kernel

DETECTOR = "values"


def run(x, weight, bias, eps, out, correction):
    wide = x.double()
    variance = wide.var(1, keepdim=True, correction=correction if x.shape[1] > 1 else 0)
    v = (wide - wide.mean(1, keepdim=True)) * torch.rsqrt(variance + eps)
    v = v if weight is None else v * weight
    out.copy_(v if bias is None else v + bias)


@kernel("layernorm", variant="wrong")
def wrong(x, weight, bias, *, eps, out):
    run(x, weight, bias, eps, out, 1)


@kernel("layernorm", variant="fixed")
def fixed(x, weight, bias, *, eps, out):
    run(x, weight, bias, eps, out, 0)
