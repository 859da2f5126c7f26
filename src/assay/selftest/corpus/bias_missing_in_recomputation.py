"""The backward pass recomputes what went into GELU and forgets the bias: right for models whose bias is still 0."""

import torch

from assay import kernel

DETECTOR = "values"


def run(dy, x, weight, shift, mean, rstd, out, dweight, dbias):
    normal = (x.double() - mean[:, None]) * rstd[:, None]
    z = normal if weight is None else normal * weight
    z = z if shift is None else z + shift
    slope = 0.5 * (1 + torch.erf(z * 0.7071067811865476)) + z * 0.3989422804014327 * torch.exp(-0.5 * z * z)
    dz = dy.double() * slope
    g = dz if weight is None else dz * weight
    along = (g * normal).mean(1, keepdim=True)
    out.copy_((g - g.mean(1, keepdim=True) - normal * along) * rstd[:, None])
    if dweight is not None:
        dweight.copy_((dz * normal).sum(0))
    if dbias is not None:
        dbias.copy_(dz.sum(0))


@kernel("ln_gelu_backward", variant="wrong")
def wrong(dy, x, weight, bias, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, x, weight, None, mean, rstd, out, dweight, dbias)


@kernel("ln_gelu_backward", variant="fixed")
def fixed(dy, x, weight, bias, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, x, weight, bias, mean, rstd, out, dweight, dbias)
