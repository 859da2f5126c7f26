"""A packed layer is called, differentiated, compiled and copied as an ordinary one."""

import copy
import gc
import io
import pickle

import pytest
import torch
from torch import nn

import assay
from assay.models.packed.linear import PackedLinear
from assay.models.swap import State
from packing import NUMBERS, TORCH, layers, spilled

# Calls.


@pytest.mark.parametrize("number", NUMBERS)
def test_every_dtype_and_shape_of_input(number):
    layer = nn.Sequential(nn.Linear(45, 7)).to(number)
    with torch.no_grad(), assay.swap(layer, TORCH) as report:
        weight = layer[0].unpacked(number)
        for shape in ((45,), (0, 45), (3, 45), (2, 3, 4, 45)):
            x = torch.randn(shape).to(number)
            exact = x.double() @ weight.double().T + layer[0].bias.double()
            assert layer(x).dtype == number and layer(x).shape == (*shape[:-1], 7)
            torch.testing.assert_close(layer(x).double(), exact, rtol=1e-2, atol=4 * torch.finfo(number).eps)
        strided = torch.randn(45, 3).to(number).t()
        torch.testing.assert_close(layer(strided), layer(strided.contiguous()))
        assert report.sites[0].copied == 1


def test_wrong_arguments_get_pytorchs_own_error():
    model = nn.Sequential(nn.Linear(8, 4))
    with assay.swap(model, TORCH):
        for wrong in (torch.randn(2, 7), torch.randn(2, 8).half(), torch.ones(2, 8, dtype=torch.int64)):
            with pytest.raises(RuntimeError, match=r"shapes|dtype"):
                model(wrong)


def test_autocast_and_transforms_are_as_with_an_ordinary_layer():
    model, x = nn.Sequential(nn.Linear(40, 8)), torch.randn(3, 40)
    with assay.swap(model, TORCH) as report:
        plain = nn.functional.linear(x, model[0].unpacked(torch.float32), model[0].bias)
        with torch.autocast("cpu", torch.bfloat16):
            cast = model(x)
        assert cast.dtype == torch.bfloat16
        torch.testing.assert_close(cast.float(), plain, rtol=2e-2, atol=2e-2)
        assert report.sites[0].state is State.REPLACED
        torch.testing.assert_close(torch.func.vmap(model)(x[:, None])[:, 0], plain)
        _, tangent = torch.func.jvp(model, (x,), (x,))
        torch.testing.assert_close(tangent, plain - model[0].bias)
        assert "torch.func" in report.sites[0].why


@pytest.mark.parametrize("rule", ["mx_linear/torch", "mxfp8_e4m3"])
def test_gradients_flow_to_the_input_and_the_bias_past_a_frozen_weight(rule):
    """grad x = dy · the unpacked weight; and neither x nor an unpacked weight is kept for it."""
    model, x = nn.Sequential(nn.Linear(45, 7)), torch.randn(2, 3, 45, requires_grad=True)
    bias, kept = model[0].bias, []
    with assay.swap(model, {"linear": rule}):
        weight = model[0].unpacked(torch.float64)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
            y = model(x)
        assert {t.dtype for t in kept} <= {torch.int8, torch.uint8}
        dy = torch.randn_like(y)
        y.backward(dy)
        torch.testing.assert_close(x.grad.double(), dy.double() @ weight, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(bias.grad, dy.sum((0, 1)))
        twice = torch.autograd.functional.hessian(lambda v: model(v).square().sum(), torch.randn(45))
        torch.testing.assert_close(twice.double(), 2 * weight.T @ weight, rtol=1e-4, atol=1e-4)
        assert [id(p) for p in model.parameters()] == [id(bias)]
    assert model[0].bias is bias and model[0].weight.grad is None


def test_a_model_trains_around_its_packed_layers():
    """What is trained while they are packed stays trained; the frozen weights come back as they were."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 1))
    x, y, weight = torch.randn(64, 16), torch.randn(64, 1), model[0].weight.detach().clone()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-2)
    (model(x) - y).square().mean().backward()
    gradient, losses = model[0].weight.grad.clone(), []
    with assay.swap(model, {"0": "mx_linear/torch"}):
        optimiser.step()
        for _ in range(20):
            losses.append((model(x) - y).square().mean())
            optimiser.zero_grad()
            losses[-1].backward()
            optimiser.step()
        bias = model[0].bias.detach().clone()
    assert losses[-1] < 0.9 * losses[0]
    assert torch.equal(model[0].weight, weight) and torch.equal(model[0].bias, bias)
    assert torch.equal(model[0].weight.grad, gradient)
    assert optimiser.param_groups[0]["params"][0] is model[0].weight


def test_torch_compile_follows_forward_and_backward():
    model, x = nn.Sequential(nn.Linear(40, 16), nn.GELU(), nn.Linear(16, 4)), torch.randn(3, 40, requires_grad=True)
    with assay.swap(model, TORCH) as report:
        plain = model(x)
        (wanted,) = torch.autograd.grad(plain.sum(), x)
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), plain)
        (found,) = torch.autograd.grad(compiled(x).sum(), x)
        torch.testing.assert_close(found, wanted)
        assert {s.state for s in report.sites if s.op == "linear"} == {State.REPLACED}
    torch._dynamo.reset()


def test_a_copy_or_a_pickle_is_packed_and_stands_alone():
    model, inputs = layers()
    for m in model:
        m._forward_hooks.clear(), m._backward_hooks.clear()
    with assay.swap(model, TORCH):
        mine = model(*inputs)
        buffer = io.BytesIO()
        torch.save(model, buffer)
        copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        copies.append(torch.load(io.BytesIO(buffer.getvalue()), weights_only=False))
        files = spilled()
        for other in copies:
            assert type(other[0]) is PackedLinear and torch.equal(other(*inputs), mine)
        del copies, other
        gc.collect()
        assert spilled() == files, "the originals belong to the model that was swapped"


def test_a_model_that_was_cast_while_packed_comes_back_cast():
    model = nn.Sequential(nn.Linear(40, 8))
    weight = model[0].weight.detach().clone()
    report = assay.swap(model, TORCH)
    model.bfloat16()
    assert model(torch.randn(2, 40).bfloat16()).dtype == torch.bfloat16
    report.undo()
    assert torch.equal(model[0].weight, weight.bfloat16()) and model(torch.randn(2, 40).bfloat16()).shape == (2, 8)
