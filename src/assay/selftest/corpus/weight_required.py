"""The weight may be left out, says the op; the kernel multiplies by it regardless."""

import torch

from assay import kernel

DETECTOR = "exception"


def normal(x, eps):
    return x * torch.rsqrt((x * x).mean(1, keepdim=True) + eps)


@kernel("rmsnorm", variant="wrong")
def wrong(x, weight, *, eps, out):
    torch.mul(normal(x, eps), weight, out=out)


@kernel("rmsnorm", variant="fixed")
def fixed(x, weight, *, eps, out):
    out.copy_(normal(x, eps) if weight is None else normal(x, eps) * weight)
