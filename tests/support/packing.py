"""What the tests of packed weights share: a model of many layers, and all that undo must give back."""

import torch
from torch import nn

from assay import host
from assay.models.packed.linear import PackedLinear

NUMBERS = (torch.float32, torch.bfloat16, torch.float16)
TORCH = {"linear": "mx_linear/torch"}


def spilled():
    """Files that hold originals now."""
    return sorted((host.data_folder() / "spill").glob("*/*"))


def packed(model):
    return [m for m in model.modules() if isinstance(m, PackedLinear)]


def everything(model):
    """Whatever undo must give back: classes, tensors by identity, bits, strides, flags and gradients, and hooks."""
    modules = [(name, m, type(m), m.training) for name, m in model.named_modules(remove_duplicate=False)]
    tensors = [
        (
            name,
            id(t),
            t.detach().clone(),
            t.stride(),
            t.dtype,
            t.device,
            t.requires_grad,
            type(t),
            id(t.grad),
            None if t.grad is None else t.grad.clone(),
        )
        for m in model.modules()
        for name, t in (*m._parameters.items(), *m._buffers.items())
        if t is not None
    ]
    hooks = [{k: (id(v), list(v)) for k, v in vars(m).items() if k.endswith("hooks")} for m in model.modules()]
    return modules, tensors, hooks


def assert_same(before, after):
    assert before[0] == after[0] and before[2] == after[2]
    for a, b in zip(before[1], after[1], strict=True):
        for x, y in zip(a, b, strict=True):
            assert torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y


def layers():
    """Odd widths, no bias, a layer that stands in two places, frozen and strided weights, a gradient, hooks."""
    torch.manual_seed(0)
    again = nn.Linear(33, 33)
    model = nn.Sequential(nn.Linear(70, 33, bias=False), nn.GELU(), again, nn.Identity(), again)
    model[0].weight.requires_grad_(False)
    again.weight = nn.Parameter(torch.randn(33, 33).t())
    again.weight.grad = torch.randn(33, 33)
    again.register_forward_hook(lambda m, args, out: out + 1)
    again.register_full_backward_hook(lambda m, gin, gout: (2 * gin[0],))
    return model.eval(), (torch.randn(4, 5, 70),)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.own = nn.Linear(40, 40), nn.Linear(40, 40), nn.Linear(40, 8)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.own(self.second(self.first(x)))


class Wider(nn.Linear):
    pass
