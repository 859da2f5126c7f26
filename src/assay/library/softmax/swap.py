"""What softmax stands for in a model: over the last dimension."""

from assay.swappable import Call, Module, Swappable


def softmax(input, dim, dtype=None):
    if not isinstance(dim, int) or input.dim() == 0 or dim not in (-1, input.dim() - 1):
        return f"over dimension {dim} of {input.dim()}, not the last"
    if input.shape[-1] == 0:
        return "its rows are empty"
    return Call("softmax", (input if dtype is None else input.to(dtype),), (), input.shape[-1])


def functional_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return softmax(input, dim, dtype)


declared = Swappable(
    ops=("softmax",),
    modules={"torch.nn.Softmax": Module(lambda module, x: softmax(x, module.dim))},
    functions={
        "torch.nn.functional.softmax": functional_softmax,
        "torch.softmax": softmax,
        "torch.special.softmax": softmax,
        "torch.Tensor.softmax": softmax,
    },
    callers=("torch.nn.MultiheadAttention",),
    hidden="a fused scaled_dot_product_attention computes its softmax inside; "
    'a Hugging Face model has one of its own with attn_implementation="eager"',
)
