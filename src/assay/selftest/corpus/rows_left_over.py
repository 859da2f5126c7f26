"""From 64 rows on they are divided among 32 programs, rows // 32 each: the rows left over are missing in
the gradients of weight and bias."""

from assay import kernel

DETECTOR = "values"


def run(dy, x, weight, mean, rstd, out, dweight, dbias, rows):
    normal = (x.double() - mean[:, None]) * rstd[:, None]
    g = dy.double() if weight is None else dy.double() * weight
    along = (g * normal).mean(1, keepdim=True)
    out.copy_((g - g.mean(1, keepdim=True) - normal * along) * rstd[:, None])
    if dweight is not None:
        dweight.copy_((dy * normal)[:rows].sum(0))
    if dbias is not None:
        dbias.copy_(dy[:rows].double().sum(0))


@kernel("layernorm_backward", backend="torch", variant="wrong")
def wrong(dy, x, weight, mean, rstd, *, out, dweight=None, dbias=None):
    rows = x.shape[0]
    run(dy, x, weight, mean, rstd, out, dweight, dbias, rows // 32 * 32 if rows >= 64 else rows)


@kernel("layernorm_backward", backend="torch", variant="fixed")
def fixed(dy, x, weight, mean, rstd, *, out, dweight=None, dbias=None):
    run(dy, x, weight, mean, rstd, out, dweight, dbias, x.shape[0])
