"""The gradients of weight and bias are added up over the rows in bfloat16, as atomics on the output
would: late rows round away."""

import torch

from assay import kernel

DETECTOR = "values"
DTYPE = "bf16"


def run(dy, x, weight, mean, rstd, out, dweight, dbias, kept):
    normal = (x.double() - mean[:, None]) * rstd[:, None]
    g = dy.double() if weight is None else dy.double() * weight
    along = (g * normal).mean(1, keepdim=True)
    out.copy_((g - g.mean(1, keepdim=True) - normal * along) * rstd[:, None])
    for total, terms in ((dweight, dy * normal), (dbias, dy.double())):
        if total is not None:
            sums = torch.zeros(x.shape[1], dtype=kept, device=x.device)
            for part in terms.split(64):
                sums += part.sum(0).to(kept)
            total.copy_(sums)


@kernel("layernorm_backward", variant="wrong")
def wrong(dy, x, weight, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, x, weight, mean, rstd, out, dweight, dbias, torch.bfloat16)


@kernel("layernorm_backward", variant="fixed")
def fixed(dy, x, weight, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, x, weight, mean, rstd, out, dweight, dbias, torch.float32)
