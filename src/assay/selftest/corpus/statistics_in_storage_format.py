"""Mean and deviation are kept in float32 and were rounded to bfloat16 before they got there."""

import torch

from assay import kernel

DETECTOR = "values"
DTYPE = "bf16"


def run(x, weight, bias, eps, out, mean, rstd, kept):
    wide = x.double()
    mu = wide.mean(1)
    scale = torch.rsqrt((wide - mu[:, None]).square().mean(1) + eps)
    v = (wide - mu[:, None]) * scale[:, None]
    v = v if weight is None else v * weight
    out.copy_(v if bias is None else v + bias)
    if mean is not None:
        mean.copy_(mu.to(kept))
    if rstd is not None:
        rstd.copy_(scale.to(kept))


@kernel("layernorm", variant="wrong")
def wrong(x, weight, bias, *, eps, out, mean=None, rstd=None):
    run(x, weight, bias, eps, out, mean, rstd, x.dtype)


@kernel("layernorm", variant="fixed")
def fixed(x, weight, bias, *, eps, out, mean=None, rstd=None):
    run(x, weight, bias, eps, out, mean, rstd, torch.float32)
