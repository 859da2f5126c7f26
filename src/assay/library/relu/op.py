"""ReLU: max(x, 0), and its backward pass. Both only select values, so every result has one right value.

NaN is passed on. The sign of a zero is not judged, so `roundings` stays undeclared: on a CPU, PyTorch's own relu(−0.0)
is 0.0 where it is computed in vectors and −0.0 in their remainder."""

from assay import Axis, Tensor, op
from assay.library.gradient import gradients

AXES = {"n": Axis(typical=4194304)}
ANY = Tensor("n", range=(-3e38, 3e38))


@op(
    axes=AXES,
    inputs={"x": ANY},
    outputs={"out": Tensor("n")},
    independent="n",
    operations=lambda w: w.n,
)
def relu(x):
    """max(x, 0)."""
    from torch import relu

    return relu(x)


@op(
    axes=AXES,
    inputs={"dy": ANY, "x": ANY},
    outputs={"out": Tensor("n")},
    independent="n",
    operations=lambda w: w.n,
)
def relu_backward(dy, x):
    """The gradient of relu with respect to x: 0 where x ≤ 0, else dy, also where x is NaN."""
    return gradients(relu.reference, [x], dy)[0]
