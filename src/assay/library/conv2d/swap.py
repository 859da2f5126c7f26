"""What conv2d stands for in a model: one group, no dilation, the same stride and padding both ways, zeros around."""

from assay.library.conv2d.op import conv2d as op
from assay.swappable import Call, Module, Swappable

LARGEST = op.axes["r"].max


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if groups != 1:
        return f"{groups} groups"
    if same(dilation) != 1:
        return f"dilation {dilation}"
    if padding == "valid":
        padding = 0
    sizes = tuple(weight.shape[-2:])
    if padding == "same":
        height, width = sizes
        if height != width or height % 2 == 0:
            return f"padding 'same' of a {height}×{width} kernel"
        padding = height // 2
    if same(stride) is None or same(padding) is None:
        return f"stride {stride} or padding {padding} differs between height and width"
    if any(size > LARGEST for size in sizes):
        return f"kernel {sizes} is larger than {LARGEST}"
    return Call("conv2d", (input, weight, bias), (same(stride), same(padding)))


def same(value):
    """The value, if it is the same both ways."""
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    return values[0] if all(v == values[0] for v in values) else None


def of_module(module, x):
    if module.padding_mode != "zeros":
        return f"padding with {module.padding_mode}"
    return conv2d(x, module.weight, module.bias, module.stride, module.padding, module.dilation, module.groups)


def limit(module):
    """Everything but the image is known before the first call."""
    bound = of_module(module, None)
    return bound if isinstance(bound, str) else ""


declared = Swappable(
    ops=("conv2d",),
    modules={"torch.nn.Conv2d": Module(of_module, limit=limit)},
    functions={"torch.nn.functional.conv2d": conv2d},
)
