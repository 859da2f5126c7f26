"""A row of zeros needs no work, since its result is zero as well; but nobody writes it."""

import torch

from assay import kernel

DETECTOR = "unwritten"


@kernel("rmsnorm", backend="torch", variant="wrong")
def wrong(x, weight, *, eps, out):
    live = (x != 0).any(-1) if x.shape[1] > 64 else torch.ones(x.shape[0], dtype=torch.bool, device=x.device)
    out[live] = _normalised(x, weight, eps)[live].to(out.dtype)


@kernel("rmsnorm", backend="torch", variant="fixed")
def fixed(x, weight, *, eps, out):
    out.copy_(_normalised(x, weight, eps))


def _normalised(x, weight, eps):
    wide = x.double()
    result = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return result if weight is None else result * weight.double()
