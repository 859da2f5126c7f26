"""GELU: x·Φ(x), exact (erf) and by its tanh approximation, and their backward passes."""

from assay import NAN, Axis, Tensor, op
from assay.library.gradient import gradients

AXES = {"n": Axis(typical=4194304)}
# At infinity the formulas disagree (−∞·0; PyTorch's own fp16 on the CPU gives NaN at +∞): outside the contract.
X = Tensor("n", specials=(NAN,))
FORWARD = {
    "axes": AXES,
    "inputs": {"x": X},
    "outputs": {"out": Tensor("n")},
    "independent": "n",
    "operations": lambda w: 8 * w.n,
    "magnitude": lambda x: x.abs(),
    # PyTorch's own vectors on the CPU take erf from Abramowitz and Stegun 7.1.26: within 1.5e-7, 2.5 ulps at 1, and six
    # roundings on the way; half of that, for 1 + erf is halved; then its sum and two products. tanh needs less.
    "roundings": 6,
}
BACKWARD = {
    "axes": AXES,
    "inputs": {"dy": X, "x": X},
    "outputs": {"out": Tensor("n")},
    "independent": "n",
    "operations": lambda w: 16 * w.n,
    # Φ(x) and x·φ(x) are each rounded at the scale of 1 before they are added.
    "magnitude": lambda dy, x: dy.abs(),
    "roundings": 6,
}


@op(**FORWARD)
def gelu(x):
    """x·Φ(x), with Φ from the error function."""
    from torch.nn.functional import gelu

    return gelu(x)


@op(**FORWARD)
def gelu_tanh(x):
    """x·Φ(x), with Φ approximated through tanh."""
    from torch.nn.functional import gelu

    return gelu(x, approximate="tanh")


@op(**BACKWARD)
def gelu_backward(dy, x):
    """The gradient of gelu with respect to x."""
    return gradients(gelu.reference, [x], dy)[0]


@op(**BACKWARD)
def gelu_tanh_backward(dy, x):
    """The gradient of gelu_tanh with respect to x."""
    return gradients(gelu_tanh.reference, [x], dy)[0]
