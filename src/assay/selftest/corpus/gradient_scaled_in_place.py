"""dy is multiplied by the weight where it lies: the caller's gradient is ruined for everybody who still needs it."""

from assay import kernel

DETECTOR = "input"


def run(dy, scaled, x, mean, rstd, out, dweight, dbias):
    normal = (x.double() - mean[:, None]) * rstd[:, None]
    if dweight is not None:
        dweight.copy_((dy * normal).sum(0))
    if dbias is not None:
        dbias.copy_(dy.double().sum(0))
    g = scaled()
    along = (g * normal).mean(1, keepdim=True)
    out.copy_((g - g.mean(1, keepdim=True) - normal * along) * rstd[:, None])


@kernel("layernorm_backward", backend="torch", variant="wrong")
def wrong(dy, x, weight, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, lambda: dy if weight is None else dy.mul_(weight), x, mean, rstd, out, dweight, dbias)


@kernel("layernorm_backward", backend="torch", variant="fixed")
def fixed(dy, x, weight, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, lambda: dy.double() if weight is None else dy.double() * weight, x, mean, rstd, out, dweight, dbias)
