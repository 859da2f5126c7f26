"""A swapped model is trained: its gradients are those of the model without the swap."""

import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import architectures
import assay
from operators import GPU, within
from swapping import rules_for, run, seeded  # noqa: F401

ROOT = Path(__file__).parents[2]


def test_a_gradient_has_a_gradient():
    model, x = nn.Sequential(nn.LayerNorm(8), nn.GELU(), nn.Softmax(-1)), torch.randn(3, 8, requires_grad=True)

    def penalty():
        (g,) = torch.autograd.grad(model(x).pow(3).sum(), x, create_graph=True)
        return torch.autograd.grad(g.pow(2).sum(), [x, *model.parameters()])

    plain = penalty()
    with assay.swap(model, {op: f"{op}/njit" for op in ("layernorm", "softmax")} | {"gelu": "gelu/torch"}):
        mine = penalty()
    for a, b in zip(mine, plain, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("build", [architectures.cnn, architectures.bert, architectures.odd], ids=lambda b: b.__name__)
def test_training_has_the_gradients_of_the_model_without_the_swap(build):
    model, inputs = build()

    def gradients(model, inputs):
        model.zero_grad()
        out = run(model, inputs)
        (out * torch.linspace(0, 1, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
        return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}

    exact = copy.deepcopy(model).double()
    oracle = gradients(exact, [i.double() if i.is_floating_point() else i for i in inputs])
    plain = gradients(model, inputs)
    if build is architectures.odd:
        model.seen.clear()
    with assay.swap(model, rules_for(model, "njit") | {"gelu": "gelu/torch"}) as report:
        mine = gradients(model, inputs)
    assert mine.keys() == plain.keys()
    for name in mine:
        within(mine[name], plain[name], oracle[name], slack=8)
    backward = {s.backward for s in report.sites if s.kernel}
    assert backward >= {"gelu_backward/torch", "PyTorch's, of the reference"}
    if build is architectures.odd:
        assert model.seen == ["pre", "pre", "backward"]  # hooks of swapped modules run as ever


INTERPRETED = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, assay, operators
from torch import nn
model = nn.Sequential(
    nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4), nn.LayerNorm(4), nn.SiLU(), nn.Softmax(-1)
)
x = torch.randn(3, 8, requires_grad=True)
def gradients():
    return torch.autograd.grad(model(x).pow(2).sum(), [x, *model.parameters()])
plain = gradients()
rules = {op: f"{op}/triton" for op in ("gelu", "layernorm", "silu", "softmax")}
with assay.swap(model, rules | {"layernorm+gelu": "ln_gelu/triton"}) as report:
    mine = gradients()
for a, b in zip(mine, plain, strict=True):
    torch.testing.assert_close(a, b)
print(*(f"{s.path}|{s.kernel}|{s.backward}|{s.calls}" for s in report.sites if s.calls), sep="\\n")
for kernel in operators.GPU:
    if kernel.address.backend == "triton":
        op, workload = operators.point(kernel)
        given = operators.arguments(op, workload)
        quick = ("test_schema", "test_autograd_registration", "test_faketensor")
        torch.library.opcheck(operators.trained(kernel, op).call, given, test_utils=quick)
        print(kernel)
"""


@pytest.mark.slow
def test_triton_trains_a_model_in_its_interpreter_if_the_process_was_started_for_it():
    """And its kernels are sound operators there."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", INTERPRETED, str(ROOT / "tests" / "support")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "1 + 2|ln_gelu/triton|ln_gelu_backward/triton|1",
        "4|layernorm/triton|layernorm_backward/triton|1",
        "5|silu/triton|silu_backward/triton|1",
        "6|softmax/triton|PyTorch's, of the reference|1",
        *(str(k) for k in GPU if k.address.backend == "triton"),
    ]
