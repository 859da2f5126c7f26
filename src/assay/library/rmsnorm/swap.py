"""What RMSNorm stands for in a model: PyTorch's, and the classes that Hugging Face's models write for themselves."""

from assay.library.layernorm.swap import norm
from assay.swappable import Module, Swappable


def rms_norm(input, normalized_shape, weight=None, eps=None):
    return norm("rmsnorm", input, normalized_shape, (weight,), eps)


def epsilon(module):
    value = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    return float(value) if isinstance(value, float | int) else None


def known(module):
    import torch

    weighted = isinstance(getattr(module, "weight", None), torch.Tensor)
    return "rmsnorm" if weighted and epsilon(module) is not None else ""


OTHERS = Module(lambda module, x: rms_norm(x, module.weight.shape, module.weight, epsilon(module)), known)

declared = Swappable(
    ops=("rmsnorm",),
    modules={
        "torch.nn.RMSNorm": Module(lambda module, x: rms_norm(x, module.normalized_shape, module.weight, module.eps))
    },
    lookalikes={"*RMSNorm": OTHERS, "*T5LayerNorm": OTHERS},
    functions={"torch.nn.functional.rms_norm": rms_norm, "torch.rms_norm": rms_norm},
)
