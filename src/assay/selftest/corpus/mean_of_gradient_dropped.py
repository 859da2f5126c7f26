"""The mean of the gradient is left out of dx: a term that is small for long rows of random numbers."""

from assay import kernel

DETECTOR = "values"


def run(dy, x, weight, mean, rstd, out, dweight, dbias, centred):
    normal = (x.double() - mean[:, None]) * rstd[:, None]
    g = dy.double() if weight is None else dy.double() * weight
    along = (g * normal).mean(1, keepdim=True)
    g = g - g.mean(1, keepdim=True) if centred else g
    out.copy_((g - normal * along) * rstd[:, None])
    if dweight is not None:
        dweight.copy_((dy * normal).sum(0))
    if dbias is not None:
        dbias.copy_(dy.double().sum(0))


@kernel("layernorm_backward", backend="torch", variant="wrong")
def wrong(dy, x, weight, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, x, weight, mean, rstd, out, dweight, dbias, False)


@kernel("layernorm_backward", backend="torch", variant="fixed")
def fixed(dy, x, weight, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, x, weight, mean, rstd, out, dweight, dbias, True)
