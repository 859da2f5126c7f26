"""The gradients of weight and bias are computed when both are asked for; a model without a bias asks for one."""

from assay import kernel

DETECTOR = "unwritten"


def run(dy, x, weight, mean, rstd, out, dweight, dbias, asked):
    normal = (x.double() - mean[:, None]) * rstd[:, None]
    g = dy.double() if weight is None else dy.double() * weight
    along = (g * normal).mean(1, keepdim=True)
    out.copy_((g - g.mean(1, keepdim=True) - normal * along) * rstd[:, None])
    if asked(g is not None for g in (dweight, dbias)):
        for gradient, terms in ((dweight, dy * normal), (dbias, dy.double())):
            if gradient is not None:
                gradient.copy_(terms.sum(0))


@kernel("layernorm_backward", backend="torch", variant="wrong")
def wrong(dy, x, weight, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, x, weight, mean, rstd, out, dweight, dbias, all)


@kernel("layernorm_backward", backend="torch", variant="fixed")
def fixed(dy, x, weight, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, x, weight, mean, rstd, out, dweight, dbias, any)
