"""What ReLU stands for in a model. What works in place (`inplace=True`, `relu_`) is left to PyTorch."""

from assay.swappable import Call, Module, Swappable

IN_PLACE = "it works in place"


def relu(input, inplace=False):
    return IN_PLACE if inplace else Call("relu", (input,))


declared = Swappable(
    ops=("relu",),
    modules={
        "torch.nn.ReLU": Module(
            lambda module, x: relu(x, module.inplace), limit=lambda module: IN_PLACE if module.inplace else ""
        )
    },
    functions={"torch.nn.functional.relu": relu, "torch.relu": relu, "torch.Tensor.relu": relu},
)
