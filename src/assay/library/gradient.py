"""Gradients for the references of backward passes."""


def gradients(function, inputs, dy):
    """The gradients with respect to all inputs, as `torch.func.vjp` gives them. That loads torch.compile, which takes
    seconds in every process that judges."""
    import torch

    with torch.enable_grad():
        leaves = [value.detach().requires_grad_() for value in inputs]
        found = torch.autograd.grad(function(*leaves), leaves, dy, create_graph=True)
    return tuple(gradient.detach() for gradient in found)
