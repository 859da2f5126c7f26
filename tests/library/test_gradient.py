"""The references of backward passes: the same bits as `torch.func.vjp`, without loading torch.compile."""

import subprocess
import sys

import pytest
import torch
from torch.func import vjp
from torch.nn.functional import gelu, layer_norm, silu

from assay.library.gradient import gradients

FUNCTIONS = {
    "gelu": (gelu, [(64, 33)]),
    "silu": (silu, [(64, 33)]),
    "layernorm": (lambda x, weight, bias: layer_norm(x, x.shape[1:], weight, bias), [(64, 33), (33,), (33,)]),
}


@pytest.mark.parametrize("number", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_vjp_to_the_bit(name, number):
    function, shapes = FUNCTIONS[name]
    inputs = [torch.randn(shape, dtype=number) for shape in shapes]
    dy = torch.randn(shapes[0], dtype=number)
    found, wanted = gradients(function, inputs, dy), vjp(function, *inputs)[1](dy)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    assert not any(value.requires_grad for value in (*found, *inputs))


@pytest.mark.slow
def test_a_gradient_does_not_load_the_compiler():
    code = """
import sys, torch
from assay.catalog.library import find_op
x = torch.randn(9)
find_op("gelu_backward").reference(x, x)
raise SystemExit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
