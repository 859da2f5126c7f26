"""What SiLU stands for in a model. What works in place is left to PyTorch."""

from assay.swappable import Call, Module, Swappable

IN_PLACE = "it works in place"


def silu(input, inplace=False):
    return IN_PLACE if inplace else Call("silu", (input,))


declared = Swappable(
    ops=("silu",),
    modules={
        "torch.nn.SiLU": Module(
            lambda module, x: silu(x, module.inplace), limit=lambda module: IN_PLACE if module.inplace else ""
        )
    },
    lookalikes={"*.SiLUActivation": Module(lambda module, x: silu(x))},
    functions={"torch.nn.functional.silu": silu},
)
