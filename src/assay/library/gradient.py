"""Gradients for the references of backward passes."""


def gradients(function, inputs, dy):
    """The gradients with respect to all inputs, as `torch.func.vjp` gives them: it loads torch.compile, which takes
    seconds in every process that judges. It is used only where the gradients are differentiated in turn, and where
    autograd is off, as inside an operator or a trace."""
    import torch

    differentiated = torch.is_grad_enabled() and any(value.requires_grad for value in (*inputs, dy))
    if not differentiated and not torch.compiler.is_compiling():
        with torch.enable_grad():
            leaves = [value.detach().requires_grad_() for value in inputs]
            result = function(*leaves)
            if result.requires_grad:
                found = torch.autograd.grad(result, leaves, dy, create_graph=True)
                return tuple(gradient.detach() for gradient in found)
    from torch.func import vjp

    return vjp(function, *inputs)[1](dy)
