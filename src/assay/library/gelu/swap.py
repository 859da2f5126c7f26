"""What GELU stands for in a model, exact and by its tanh approximation."""

from assay.swappable import Call, Module, Swappable


def gelu(input, approximate="none"):
    return Call("gelu_tanh" if approximate == "tanh" else "gelu", (input,))


EXACT = Module(lambda module, x: gelu(x))
TANH = Module(lambda module, x: gelu(x, "tanh"), op=lambda module: "gelu_tanh")

declared = Swappable(
    ops=("gelu", "gelu_tanh"),
    modules={
        "torch.nn.GELU": Module(
            lambda module, x: gelu(x, module.approximate), op=lambda module: gelu(None, module.approximate).op
        )
    },
    lookalikes={
        "*.GELUActivation": EXACT,
        "*.NewGELUActivation": TANH,
        "*.FastGELUActivation": TANH,
        "*.AccurateGELUActivation": TANH,
        "*.GELUTanh": TANH,
        "*.PytorchGELUTanh": TANH,
    },
    functions={"torch.nn.functional.gelu": gelu},
)
