"""Rows of more than 1024 columns go another way, and there nobody thought of the mean and the
deviation that a training step keeps."""

import torch

from assay import kernel

DETECTOR = "unwritten"


def run(x, weight, bias, eps, out, mean, rstd, longest):
    wide = x.double()
    mu = wide.mean(1)
    scale = torch.rsqrt((wide - mu[:, None]).square().mean(1) + eps)
    v = (wide - mu[:, None]) * scale[:, None]
    v = v if weight is None else v * weight
    out.copy_(v if bias is None else v + bias)
    if x.shape[1] <= longest:
        if mean is not None:
            mean.copy_(mu)
        if rstd is not None:
            rstd.copy_(scale)


@kernel("layernorm", variant="wrong")
def wrong(x, weight, bias, *, eps, out, mean=None, rstd=None):
    run(x, weight, bias, eps, out, mean, rstd, 1024)


@kernel("layernorm", variant="fixed")
def fixed(x, weight, bias, *, eps, out, mean=None, rstd=None):
    run(x, weight, bias, eps, out, mean, rstd, x.shape[1])
