"""Sixteen work spaces are added up whatever the number of rows; with fewer than sixteen rows some were
never written."""

from assay import kernel

DETECTOR = "nonfinite"


def run(dy, x, weight, mean, rstd, out, dweight, dbias, parts, used):
    normal = (x.double() - mean[:, None]) * rstd[:, None]
    g = dy.double() if weight is None else dy.double() * weight
    along = (g * normal).mean(1, keepdim=True)
    out.copy_((g - g.mean(1, keepdim=True) - normal * along) * rstd[:, None])
    for which, total, terms in ((0, dweight, dy * normal), (1, dbias, dy)):
        if total is not None:
            for p in range(min(16, x.shape[0])):
                parts[which, p] = terms[p::16].double().sum(0)
            total.copy_(parts[which, :used].sum(0))


@kernel("layernorm_backward", backend="torch", variant="wrong", scratch={"parts": ("fp64", 2, 16, "cols")})
def wrong(dy, x, weight, mean, rstd, *, out, parts, dweight=None, dbias=None):
    run(dy, x, weight, mean, rstd, out, dweight, dbias, parts, 16)


@kernel("layernorm_backward", backend="torch", variant="fixed", scratch={"parts": ("fp64", 2, 16, "cols")})
def fixed(dy, x, weight, mean, rstd, *, out, parts, dweight=None, dbias=None):
    run(dy, x, weight, mean, rstd, out, dweight, dbias, parts, min(16, x.shape[0]))
