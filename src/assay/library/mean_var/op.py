"""The mean and the population variance of each row of a matrix."""

from assay import NAN, Axis, Tensor, op


def scale(x):
    """What float32 rounding is measured against.

    The sum and the division round the mean µ at the scale of Σ|x|/cols. A deviation x − µ is then off by an
    ulp of |x| + |µ|, and its square by |x − µ| times that. Where all deviations are zero, the square of µ's
    own error remains.
    """
    mean, size = x.mean(1, keepdim=True), x.abs().mean(1)
    spread = ((x - mean).abs() * (x.abs() + mean.abs())).mean(1)
    return size, spread + 2.0**-22 * size.square()


@op(
    axes={"rows": Axis(typical=8192), "cols": Axis(min=1, typical=4096)},
    # Variances of up to 1e6 are seldom more than fp16 holds. Infinities are outside the contract: one makes
    # the mean Inf where it is a plain sum, and NaN in Welford's update, which PyTorch uses.
    inputs={"x": Tensor("rows", "cols", range=(-1e3, 1e3), specials=(NAN,))},
    outputs={"out": Tensor("rows"), "var": Tensor("rows")},
    independent="rows",
    operations=lambda w: 4 * w.rows * w.cols,
    magnitude=scale,
    roundings=1.2,  # a division each, and the squares of deviations that are half an ulp off; sums count apart
    terms=lambda w: w.cols,
)
def mean_var(x):
    """Σx/cols and Σ(x − mean)²/cols of each row."""
    from torch import var_mean

    if not x.numel():  # PyTorch would warn of its degrees of freedom
        return x.new_empty(0), x.new_empty(0)
    var, mean = var_mean(x, dim=1, correction=0)
    return mean, var
