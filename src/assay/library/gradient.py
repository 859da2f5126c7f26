"""Gradients for the references of backward passes."""


def gradients(function, inputs, dy):
    """The gradients with respect to all inputs, as `torch.func.vjp` gives them: it loads torch.compile, which takes
    seconds in every process that judges. torch.compile itself follows it, and cannot follow autograd."""
    import torch

    if torch.compiler.is_compiling():
        from torch.func import vjp

        return vjp(function, *inputs)[1](dy)
    with torch.enable_grad():
        leaves = [value.detach().requires_grad_() for value in inputs]
        found = torch.autograd.grad(function(*leaves), leaves, dy, create_graph=True)
    return tuple(gradient.detach() for gradient in found)
