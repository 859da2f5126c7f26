"""The Euclidean distance of each row of one matrix from the same row of another."""

from assay import Axis, Tensor, op

X = Tensor("rows", "cols", range=(-100.0, 100.0))  # fp16 then holds the distance of rows of 100 000 columns


def distance(x, y):
    from torch.linalg import vector_norm

    return vector_norm(x - y, dim=1)


def scale(x, y):
    """The distance itself. Below 2⁻⁶³ squares underflow: their root is off by up to 2⁻⁷⁵ for each."""
    return distance(x, y) + 2.0**-51 * x.shape[1] ** 0.5


@op(
    axes={"rows": Axis(typical=8192), "cols": Axis(typical=1024)},
    inputs={"x": X, "y": X},
    outputs={"out": Tensor("rows")},
    independent="rows",
    operations=lambda w: 3 * w.rows * w.cols,
    magnitude=scale,
    roundings=2,  # each difference, half of what the sum of squares loses, the root
    terms=lambda w: w.cols,
)
def euclidean_distance(x, y):
    """‖x − y‖₂ of each row."""
    return distance(x, y) if x.element_size() > 2 else distance(x.float(), y.float()).to(x.dtype)
