"""What the tests of swap share: rules for a model, all that a swap could leave a trace on, the sites of a report."""

import pytest
import torch
from torch import nn

import assay
from assay.catalog import library
from assay.errors import UsageError
from operators import OPS

HOOKS = [n for n in vars(nn.Module()) if "hooks" in n]


@pytest.fixture(autouse=True)
def seeded():
    """The same random numbers in every run, and nothing that an earlier test compiled."""
    torch.manual_seed(0)
    torch._dynamo.reset()


def rules_for(model, backend):
    """Every op of the model by the kernel of one language, where it has one."""
    rules = {}
    for op in OPS:
        name = backend if any(k.name == f"{op}/{backend}" for k in library.kernels()) else "torch"
        try:
            assay.swap(model, {op: f"{op}/{name}"}).undo()
            rules[op] = f"{op}/{name}"
        except UsageError:
            pass
    return rules


def run(model, inputs):
    out = model(*inputs)
    return out if isinstance(out, torch.Tensor) else out[0]


def everything(model):
    """All that a swap could leave a trace on: objects by identity, tensors by bits."""
    found = {"modules": [(path, id(m), type(m)) for path, m in model.named_modules(remove_duplicate=False)]}
    for path, m in model.named_modules():
        found[path, "dict"] = {k: id(v) for k, v in vars(m).items()}
        found[path, "hooks"] = {n: [(k, id(v)) for k, v in getattr(m, n).items()] for n in HOOKS if getattr(m, n)}
        found[path, "training"] = m.training
        found[path, "slots"] = {k: id(v) for d in (m._parameters, m._buffers, m._modules) for k, v in d.items()}
    for name, p in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)):
        found[name, "tensor"] = (id(p), p.requires_grad, p.data_ptr(), p.dtype, p.detach().numpy().tobytes())
    found["state"] = {k: v.numpy().tobytes() for k, v in model.state_dict().items()}
    return found


def sites(report):
    return {(s.path, s.op, s.form): s for s in report.sites}
