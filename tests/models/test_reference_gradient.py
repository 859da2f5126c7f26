"""PyTorch's gradient of a reference: traced, the same bits as evaluated each time."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch

from assay.catalog import library
from assay.inputs import generate
from assay.models.operators import gradient as module
from assay.models.operators.gradient import ByReference, evaluated
from assay.workload import Workload

OPS = ("gelu", "gelu_tanh", "silu", "layernorm", "rmsnorm", "softmax", "conv2d", "ln_gelu")
GELU = library.ops()["gelu"]


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(module, "AFTER", 1)


pytestmark = pytest.mark.usefixtures("at_once")


def case(op, sizes=5):
    workload = Workload.of(op, ",".join(f"{a}={3 if a in 'rs' else sizes}" for a in op.axes) + ",dtype=fp32")
    drawn = generate(workload)
    inputs = {n: drawn.get(n) for n in op.inputs}
    attributes = dict(workload.attributes)
    made = op.reference(*inputs.values(), **attributes)
    out = made[0] if isinstance(made, tuple) else made
    return inputs, attributes, {next(iter(op.outputs)): torch.randn_like(out)}


def counting(op):
    calls = []

    def counted(*args, **kwargs):
        calls.append(1)
        return op.reference(*args, **kwargs)

    return replace(op, reference=counted), calls


@torch.no_grad()
@pytest.mark.parametrize("name", OPS)
def test_it_has_the_same_bits_and_the_reference_is_evaluated_once_for_each_shape(name):
    op, calls = counting(library.ops()[name])
    gradient = ByReference(op)
    for sizes in (5, 4, 5, 4):
        inputs, attributes, given = case(op, sizes)
        wanted = [n for n, t in inputs.items() if t is not None]
        calls.clear()
        mine = gradient(inputs, attributes, wanted, given)
        again = gradient(inputs, attributes, wanted[:1], given)
        plain = evaluated(library.ops()[name], inputs, attributes, wanted, given)
        assert list(mine) == wanted and list(again) == wanted[:1]
        assert all(torch.equal(mine[n], plain[n]) for n in wanted) and torch.equal(again[wanted[0]], plain[wanted[0]])
    assert calls == []  # both sizes were known by then


@torch.no_grad()
def test_only_what_comes_again_and_again_is_traced(monkeypatch):
    monkeypatch.setattr(module, "AFTER", 3)
    op, calls = counting(GELU)
    gradient = ByReference(op)
    for size in (4, 5, 4, 5, 4, 4, 4):
        gradient({"x": torch.ones(size)}, {}, ["x"], {"out": torch.ones(size)})
    assert len(calls) == 5  # the third of size 4 is the one that was traced


@torch.no_grad()
def test_what_a_reference_does_by_value_is_done_with_every_call():
    op = replace(GELU, reference=lambda x: x * 2 if x.sum() > 0 else x * 3)
    gradient, dy = ByReference(op), torch.ones(4)
    for x, factor in ((torch.ones(4), 2), (-torch.ones(4), 3), (torch.ones(4), 2)):
        assert gradient({"x": x}, {}, ["x"], {"out": dy})["x"].tolist() == [factor] * 4


@torch.no_grad()
def test_a_tensor_from_elsewhere_is_read_with_every_call():
    factor = torch.full((4,), 2.0)
    gradient = ByReference(replace(GELU, reference=lambda x: x * factor))
    for value in (2.0, 5.0):
        factor = torch.full((4,), value)
        assert gradient({"x": torch.ones(4)}, {}, ["x"], {"out": torch.ones(4)})["x"].tolist() == [value] * 4


@torch.no_grad()
def test_a_tensor_made_inside_is_no_obstacle():
    gradient = ByReference(replace(GELU, reference=lambda x: x * torch.tensor([2.0, 3.0])))
    for _ in range(2):
        assert gradient({"x": torch.ones(2)}, {}, ["x"], {"out": torch.ones(2)})["x"].tolist() == [2.0, 3.0]


@torch.no_grad()
@pytest.mark.parametrize("by_value", [False, True])
def test_what_is_remembered_holds_no_tensor(by_value):
    op = replace(GELU, reference=lambda x: x * 2 if not by_value or x.sum() > 0 else x * 3)
    gradient, x, dy = ByReference(op), torch.ones(4), torch.ones(4)
    gradient({"x": x}, {}, ["x"], {"out": dy})
    watched = weakref.ref(x), weakref.ref(dy)
    del x, dy
    gc.collect()
    assert [w() for w in watched] == [None, None]


@torch.no_grad()
def test_autocast_does_not_reach_into_it():
    x, w, dy = torch.randn(4, 8), torch.randn(8, 8), torch.randn(4, 8)
    op = replace(GELU, inputs={"x": GELU.inputs["x"], "w": GELU.inputs["x"]}, reference=lambda x, w: x @ w)
    gradient = ByReference(op)
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16):
            found = gradient({"x": x, "w": w}, {}, ["x"], {"out": dy})["x"]
        assert torch.equal(found, dy @ w.T)


def test_a_gradient_of_the_gradient_is_not_traced(monkeypatch):
    monkeypatch.setattr(module, "traced", pytest.fail)
    x = torch.randn(4, requires_grad=True)
    (first,) = ByReference(GELU)({"x": x}, {}, ["x"], {"out": torch.ones(4)}).values()
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.abs().max() > 0
