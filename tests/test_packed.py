"""Linear layers packed in a model: only packed weights stay in memory; undo gives the originals back bit for bit."""

import contextlib
import copy
import fcntl
import gc
import io
import os
import pickle
import re
import resource
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.utils import parametrizations

import architectures
import assay
from assay import host
from assay.errors import AssayError, UsageError
from assay.models.packed import format as formats
from assay.models.packed.account import BIAS, EMBEDDINGS, SHORT, account
from assay.models.packed.checkpoint import load, save
from assay.models.packed.compare import compare
from assay.models.packed.format import MX_FLOATS, MxInt8
from assay.models.packed.linear import READ, PackedLinear
from assay.models.packed.peak import peak, peak_saved
from assay.models.subject import checkpoint
from assay.models.subject.checkpoint import Checkpoint
from assay.models.swap import State

ROOT = Path(__file__).parents[1]
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


# Formats.


def test_the_theory_is_that_of_the_specification():
    """An element's bits and a 32nd of the scale's eight; packed tensors of whole blocks take just that."""
    assert MxInt8().bits == 8.25
    assert {f.name: f.bits for f in MX_FLOATS} == {
        "mxfp8_e4m3": 8.25,
        "mxfp8_e5m2": 8.25,
        "mxfp6_e2m3": 6.25,
        "mxfp6_e3m2": 6.25,
        "mxfp4_e2m1": 4.25,
    }
    weight = torch.randn(6, 96)
    for kind in (MxInt8(), *MX_FLOATS):
        made = kind.pack(weight)
        assert 8 * sum(t.numel() * t.element_size() for t in made) == kind.bits * weight.numel()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 5), st.integers(1, 100), st.sampled_from((torch.float32, torch.bfloat16, torch.float16)), st.data()
)
def test_packing_keeps_what_the_format_can_hold(rows, cols, number, data):
    """Shapes are as declared, a weight that was packed once is packed again without loss, and 16-bit ones lose nothing
    by their dtype."""
    kind = data.draw(st.sampled_from((MxInt8(), *MX_FLOATS)))
    number = data.draw(st.sampled_from(NUMBERS))
    weight = torch.randn(rows, cols, generator=torch.Generator().manual_seed(rows * cols)).to(number)
    made = kind.pack(weight)
    assert (made.elements.shape, made.scales.shape) == kind.extents(rows, cols)
    assert made.elements.dtype in (torch.int8, torch.uint8) and made.scales.dtype == torch.uint8
    assert all(torch.equal(a, b) for a, b in zip(made, kind.pack(weight.float()), strict=True))
    once = kind.unpack(made, cols, torch.float32)
    assert once.shape == weight.shape
    assert torch.equal(kind.unpack(kind.pack(once), cols, torch.float32), once)
    # Within half a step of the block's largest, or where that is cut off, within the whole.
    widest = weight.float().abs().amax()
    assert (once - weight.float()).abs().max() <= widest * 2.0 ** {8: -3, 6: -3, 4: -1}[getattr(kind, "width", 8)]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 63), min_size=8, max_size=8), min_size=1, max_size=4))
def test_four_codes_of_six_bits_fill_three_bytes(codes):
    given = torch.tensor(codes, dtype=torch.uint8)
    made = formats._pack_six(given)
    assert made.shape == (len(codes), 6) and torch.equal(formats._unpack_six(made), given)


def test_the_float_formats_are_torchaos_own():
    from torchao.prototype.mx_formats.mx_tensor import MXTensor

    weight = torch.randn(8, 64)
    for kind in MX_FLOATS:
        theirs = MXTensor.to_mx(weight, kind._element, 32).dequantize(torch.float32)
        assert torch.equal(kind.unpack(kind.pack(weight), 64, torch.float32), theirs), kind.name


def test_without_torchao_its_formats_say_what_to_install(monkeypatch):
    formats.torchao.cache_clear()
    for name in [n for n in sys.modules if n.partition(".")[0] == "torchao"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchao", None)
    model = nn.Sequential(nn.Linear(4, 4))
    with pytest.raises(AssayError, match=r"(?s)torchao.*pip install 'kernel-assay\[models\]'"):
        assay.swap(model, {"linear": "mxfp4_e2m1"})
    assert type(model[0]) is nn.Linear and not spilled()
    formats.torchao.cache_clear()


def test_every_language_packs_the_same_bits():
    weight = torch.randn(7, 45)
    mine, theirs = MxInt8("torch").pack(weight), MxInt8("njit").pack(weight)
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    assert torch.equal(MxInt8("njit").unpack(mine, 45, torch.float32), MxInt8().unpack(mine, 45, torch.float32))


# Into a model and out again.


@pytest.mark.parametrize("make", [layers, *architectures.ALL])
def test_undo_gives_everything_back_bit_for_bit(make):
    model, inputs = make()
    before, plain = everything(model), model(*inputs)
    with contextlib.ExitStack() as stack:
        report = stack.enter_context(assay.swap(model, TORCH))
        assert packed(model) or make is architectures.gpt2
        mine = model(*inputs)
        assert len(spilled()) == len({id(m.elements) for m in packed(model)})
        assert not any(type(m) is nn.Linear for m in model.modules() if m not in _left(model, report))
    assert not spilled()
    if make is architectures.odd:  # it counts its calls
        model.calls.zero_()
    assert_same(before, everything(model))
    if make is not architectures.odd:
        assert all(torch.equal(a, b) for a, b in zip(_tensors(plain), _tensors(model(*inputs)), strict=True))
    assert compare(plain, mine).least_cosine > 0.98


def _left(model, report):
    return {model.get_submodule(s.path) for s in report.sites if s.op == "linear" and s.state is State.LEFT}


def _tensors(outputs):
    from torch.utils import _pytree

    return [t for t in _pytree.tree_leaves(outputs) if isinstance(t, torch.Tensor)]


def test_only_packed_weights_stay_in_memory():
    """No tensor that lives has the original's memory, and the memory itself is gone."""
    model, inputs = architectures.bert()
    linears = [m for m in model.modules() if isinstance(m, nn.Linear)]
    memory = [StorageWeakRef(m.weight.untyped_storage()) for m in linears]
    elements, before = sum(m.weight.numel() for m in linears), [StorageWeakRef(s) for s in _living()]
    with assay.swap(model, TORCH):
        assert all(ref.expired() for ref in memory)
        blocks = sum(m.scales.numel() for m in packed(model))
        assert _since(before) == elements + blocks
        model(*inputs)
        assert _since(before) == elements + blocks, "a forward pass leaves nothing unpacked behind"
        assert all(not m.weight.numel() for m in linears)
    assert _since(before) == 4 * elements


def _living():
    """The memory of all tensors of this process, whichever test made them."""
    gc.collect()
    tensors = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
    return {s._cdata: s for s in (t.untyped_storage() for t in tensors)}.values()


def _since(before):
    """Bytes of tensors that were not there before."""
    known = {ref.cdata for ref in before if not ref.expired()}
    return sum(storage.nbytes() for storage in _living() if storage._cdata not in known)


@pytest.mark.gpu
def test_the_gpu_holds_only_packed_weights():
    """By the allocator's own count, to 0.5 points of theory; and the peak of a forward pass falls with it."""
    model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).cuda()
    x = torch.randn(16, 2048, device="cuda")
    with torch.no_grad():
        exact = model(x)
        before, held = peak(model, lambda: model(x)), torch.cuda.memory_allocated()
        with assay.swap(model, {"linear": "mx_linear/triton"}) as report:
            saved = held - torch.cuda.memory_allocated()
            assert abs(saved / (8 * 2048 * 2048 * 4) - (1 - 8.25 / 32)) < 0.005
            assert compare(exact, model(x)).sqnr > 30
            found = peak_saved(before, peak(model, lambda: model(x)), account(model, report))
            assert found["before"]["total"] - found["after"]["total"] > 0.95 * saved  # the rest is cuBLAS' own
        assert torch.equal(model(x), exact)
    assert abs(torch.cuda.memory_allocated() - held) < 0.005 * held


def test_marks_on_a_layer_are_seen_on_the_packed_one():
    """Hugging Face puts some there; a name that the packed layer uses itself is not overwritten."""
    model = nn.Sequential(nn.Linear(8, 8))
    model[0]._is_hf_initialized, model[0].kernel = True, "mine"
    with assay.swap(model, TORCH):
        assert model[0]._is_hf_initialized and model[0].kernel == "mx_linear/torch"
    assert model[0].kernel == "mine"


def test_the_kernels_of_all_languages_serve_the_same_layer():
    model, inputs = architectures.bert()
    exact, found = model(*inputs), {}
    for language in ("torch", "njit"):
        with assay.swap(model, {"linear": f"mx_linear/{language}"}) as report:
            found[language] = model(*inputs).last_hidden_state
            sites = [s for s in report.sites if s.op == "linear"]
            assert {(s.kernel, s.state, s.calls) for s in sites} == {(f"mx_linear/{language}", State.REPLACED, 1)}
            assert {s.backward for s in sites} == {"PyTorch's; the packed weight is frozen"}
    torch.testing.assert_close(found["torch"], found["njit"], rtol=1e-4, atol=1e-5)
    assert compare(exact.last_hidden_state, found["torch"]).sqnr > 25


@pytest.mark.parametrize("name", [f.name for f in MX_FLOATS])
def test_torchaos_formats_come_through_the_same_door(name):
    model, inputs = layers()
    before, plain = everything(model), model(*inputs)
    with assay.swap(model, {"linear": name}) as report:
        mine = model(*inputs)
        assert {m.format.name for m in packed(model)} == {name}
        assert {s.kernel for s in report.sites if s.op == "linear"} == {f"{name}/torch"}
        x = inputs[0]
        assert torch.equal(model[0](x), nn.functional.linear(x, model[0].unpacked(torch.float32)))
    assert_same(before, everything(model))
    assert compare(plain, mine).sqnr > {"mxfp4": 5, "mxfp6": 12, "mxfp8": 12}[name[:5]]


def test_other_kernels_are_swapped_beside_and_around():
    model, inputs = layers()
    before, plain = everything(model), model(*inputs)
    with assay.swap(model, {"gelu": "gelu/torch", **TORCH}) as both:
        assert {s.op for s in both.sites if s.state is State.REPLACED} == {"gelu", "linear"}
        inside = model(*inputs)
    assert_same(before, everything(model))
    with assay.swap(model, TORCH) as outer:
        inner = assay.swap(model, {"gelu": "gelu/torch"})
        assert torch.equal(model(*inputs), inside)
        outer.undo()
        assert type(model[0]) is nn.Linear
        inner.undo()
    assert_same(before, everything(model))
    assert torch.equal(model(*inputs), plain)


def test_an_exception_inside_still_restores():
    model, inputs = layers()
    before = everything(model)
    with pytest.raises(ZeroDivisionError), assay.swap(model, TORCH):
        model(*inputs)
        raise ZeroDivisionError
    assert_same(before, everything(model))
    assert not spilled()


# What is shared, and what is left.


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.own = nn.Linear(40, 40), nn.Linear(40, 40), nn.Linear(40, 8)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.own(self.second(self.first(x)))


def test_layers_that_share_a_weight_share_the_packed_one():
    model, x = Tied(), torch.randn(3, 40)
    before, plain = everything(model), model(x)
    with assay.swap(model, TORCH):
        assert model.first.elements is model.second.elements and model.first.scales is model.second.scales
        assert len(spilled()) == 2
        assert compare(plain, model(x)).sqnr > 25
    assert model.first.weight is model.second.weight
    assert_same(before, everything(model))


def test_a_weight_that_somebody_else_needs_is_left():
    """Taking it away would break the layer that stays."""
    model = Tied()
    with assay.swap(model, {"first": "mx_linear/torch", "own": "mx_linear/torch"}) as report:
        found = {s.path: (s.state, s.why) for s in report.sites}
        assert found["first"] == (State.LEFT, "its weight shares its memory with second.weight, which stays as it is")
        assert found["own"][0] is State.REPLACED and model.first.weight.numel()
    model.second.weight = nn.Parameter(model.first.weight.data)  # the same memory by another Parameter
    with assay.swap(model, TORCH) as report:
        assert [s.state for s in report.sites] == [State.LEFT, State.LEFT, State.REPLACED]


def test_gpt2s_layers_are_left_with_the_reason():
    model, inputs = architectures.gpt2()
    plain = model(*inputs).logits
    with assay.swap(model, TORCH) as report:
        found = {s.path: s.why for s in report.sites if s.op == "linear"}
        assert found["lm_head"] == ("its weight shares its memory with transformer.wte.weight, which stays as it is")
        assert found["transformer.h.0.mlp.c_fc"] == "Conv1D holds its weight transposed"
        assert torch.equal(model(*inputs).logits, plain)


class Wider(nn.Linear):
    pass


def _view():
    layer = nn.Linear(8, 8)
    layer.weight = nn.Parameter(torch.randn(16, 8)[:8])
    return layer


def _with_buffer():
    layer = nn.Linear(8, 8)
    layer.register_buffer("mask", torch.ones(8))
    return layer


def _in_shared_memory():
    layer = nn.Linear(8, 8)
    layer.weight.data.share_memory_()
    return layer


def _made_in_inference_mode():
    with torch.inference_mode():
        return nn.Linear(8, 8)


LEFT = {
    "a class of its own over nn.Linear": lambda: Wider(8, 8),
    "computed by a parametrisation": lambda: parametrizations.weight_norm(nn.Linear(8, 8)),
    "part of a larger tensor": _view,
    "more than a weight and a bias: mask": _with_buffer,
    "its weight is float64": lambda: nn.Linear(8, 8).double(),
    "its weight is empty": lambda: nn.Linear(8, 0),
    "shared with other processes": _in_shared_memory,
    "made in inference mode": _made_in_inference_mode,
    "its weight is on meta": lambda: nn.Linear(8, 8, device="meta"),
}


@pytest.mark.parametrize("why", LEFT)
def test_what_cannot_be_given_back_whole_is_left(why):
    model = nn.Sequential(nn.Linear(8, 8), LEFT[why]())
    layer, weight = model[1], model[1]._parameters.get("weight")
    with assay.swap(model, TORCH) as report:
        assert report.sites[1].state is State.LEFT and why in report.sites[1].why
        assert model[1] is layer and layer._parameters.get("weight") is weight
        assert isinstance(model[0], PackedLinear)


def test_code_that_reads_the_weight_goes_on_working_and_is_told():
    """nn.TransformerEncoderLayer's fast path takes its layers' weights and calls none of them."""
    torch.manual_seed(0)
    model, x = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True, dropout=0.0).eval(), torch.randn(2, 5, 32)
    with torch.no_grad():
        plain = model(x)
        with assay.swap(model, TORCH) as report:
            assert compare(plain, model(x)).sqnr > 30
            found = {s.path: (s.state, s.why) for s in report.sites if s.op == "linear"}
    assert found["linear1"] == found["linear2"] == (State.FELL_BACK, READ)
    assert found["self_attn.out_proj"] == (State.LEFT, "nn.MultiheadAttention reads its weight without calling it")


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


# Originals in files.


def test_no_room_for_the_originals_leaves_the_model_as_it_was():
    """A real limit of the system's on the size of files: the first weight fits, the second does not."""
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(200, 200))
    before = everything(model)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(AssayError, match=r"(?s)cannot write .*spill.*it needs 0\.2 MB.*ASSAY_DATA"):
            assay.swap(model, TORCH)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_same(before, everything(model))
    assert not spilled()


@pytest.mark.parametrize("where", ["pack", "standing_for"])
def test_an_error_after_the_original_was_written_leaves_the_model_as_it_was(where, monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError

    model, inputs = layers()
    before, plain = everything(model), model(*inputs)
    monkeypatch.setattr(*((MxInt8, "pack") if where == "pack" else (PackedLinear, "standing_for")), fail)
    with pytest.raises(MemoryError):
        assay.swap(model, TORCH)
    assert_same(before, everything(model))
    assert torch.equal(model(*inputs), plain) and not spilled()


def test_a_folder_that_cannot_be_made_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "file"))
    with pytest.raises(AssayError, match=r"(?s)cannot keep original weights in .*ASSAY_DATA"):
        assay.swap(nn.Sequential(nn.Linear(8, 8)), TORCH)


def _damage(file):
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)
    return "SHA-256"


def _cut(file):
    file.write_bytes(file.read_bytes()[:-5])
    return "damaged"


def _lose(file):
    file.unlink()
    return "no file"


def _mistake(file):
    file.write_bytes(next(f for f in spilled() if f != file).read_bytes())
    return "another file than the one that was written"


@pytest.mark.parametrize("harm", [_damage, _cut, _lose, _mistake])
def test_a_harmed_file_is_named_with_its_weight_and_the_rest_comes_back(harm):
    model, x = nn.Sequential(nn.Linear(40, 24), nn.GELU(), nn.Linear(24, 8)), torch.randn(3, 40)
    before, plain = everything(model), model(x)
    report = assay.swap(model, {"0": "mx_linear/torch"})
    (file,) = spilled()
    also = assay.swap(model, {"2": "mx_linear/torch", "1": "gelu/torch"})
    also_file = next(f for f in spilled() if f != file)
    intact, mine = also_file.read_bytes(), model(x)
    said = harm(also_file)
    with pytest.raises(AssayError, match=rf"(?s)2: the original weight \(8×24 float32\).*{also_file.name}.*"):
        also.undo()
    with pytest.raises(AssayError, match=said):
        also.undo()
    assert isinstance(model[2], PackedLinear) and torch.allclose(model(x), mine), "the layer stays packed"
    assert type(model[1]) is nn.GELU
    report.undo()
    assert type(model[0]) is nn.Linear
    also_file.write_bytes(intact)
    also.undo()
    assert_same(before, everything(model))
    assert torch.equal(model(x), plain) and not spilled()


def test_originals_that_nobody_can_ask_for_are_removed():
    model = nn.Sequential(nn.Linear(8, 8))
    assay.swap(model, TORCH)
    assert len(spilled()) == 1
    del model
    gc.collect()
    assert not spilled()


def test_what_a_killed_process_left_is_swept_and_a_living_ones_is_not(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    root = host.data_folder() / "spill"
    for name in ("dead", "alive"):
        (root / name).mkdir(parents=True)
        (root / name / "weight.safetensors").write_text("")
    lock = os.open(root / "alive", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    with assay.swap(nn.Sequential(nn.Linear(8, 8)), TORCH):
        assert not (root / "dead").exists() and (root / "alive" / "weight.safetensors").exists()
    os.close(lock)


# Packed in a file.


def test_a_checkpoint_stays_packed_and_comes_back_exactly(tmp_path):
    for rule in ("mx_linear/torch", "mxfp6_e3m2"):
        model, inputs = architectures.bert()
        with assay.swap(model, {"linear": rule}):
            save(model, tmp_path / "packed.safetensors")
            state, mine = {k: v.clone() for k, v in model.state_dict().items()}, model(*inputs).last_hidden_state
        fresh, _ = architectures.bert()
        found = load(fresh, tmp_path / "packed.safetensors", "mx_linear/torch")
        assert len(found) == 12 and all(isinstance(fresh.get_submodule(name), PackedLinear) for name in found)
        assert state.keys() == fresh.state_dict().keys()
        assert all(torch.equal(v, state[k]) and v.dtype == state[k].dtype for k, v in fresh.state_dict().items())
        assert torch.equal(fresh(*inputs).last_hidden_state, mine)
        save(fresh, tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "packed.safetensors").read_bytes()


def test_a_checkpoint_says_its_format_and_holds_shared_weights_once(tmp_path):
    import json

    from safetensors import safe_open

    model, x, file = Tied(), torch.randn(3, 40), tmp_path / "packed.safetensors"
    with assay.swap(model, TORCH):
        save(model, file)
        mine = model(x)
    with safe_open(file, "pt") as opened:
        assert "first.elements" in opened.keys() and "second.elements" not in opened.keys()  # noqa: SIM118
        about = json.loads(json.loads(opened.metadata()["assay"])["facts"])
    assert about["packed"]["second"] == {"format": "mxint8", "shape": [40, 40]}
    fresh = Tied()
    fresh.own.register_forward_hook(lambda m, args, out: out + 1)
    load(fresh.eval(), file, "mx_linear/torch")
    assert fresh.first.elements is fresh.second.elements and not fresh.own.training
    assert torch.equal(fresh(x), mine + 1)


def test_each_kind_of_file_names_the_function_that_loads_it(tmp_path):
    model = nn.Sequential(nn.Linear(40, 8))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    with assay.swap(model, TORCH):
        save(model, tmp_path / "packed.safetensors")
    checkpoint.write(tmp_path / "plain.safetensors", Checkpoint(before, {}))
    wanted = "packed.checkpoint.load", "subject.checkpoint.load_into"
    for loads, other, name in zip((checkpoint.load_into, load), ("packed", "plain"), wanted, strict=True):
        with pytest.raises(UsageError) as caught:
            loads(model, tmp_path / f"{other}.safetensors")
        assert caught.value.fix == f"load it with assay.models.{name}"
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_a_checkpoint_that_does_not_fit_changes_nothing(tmp_path):
    file = tmp_path / "packed.safetensors"
    model = nn.Sequential(nn.Linear(40, 8), nn.GELU(), nn.Linear(8, 4))
    with pytest.raises(UsageError, match="nothing in this model is packed"):
        save(model, file)
    with assay.swap(model, TORCH):
        save(model, file)
    wrong = {
        "0 is 8×40, the model's is 8×41": nn.Sequential(nn.Linear(41, 8), nn.GELU(), nn.Linear(8, 4)),
        "has a packed layer 2, the model has none": nn.Sequential(nn.Linear(40, 8), nn.GELU(), nn.Identity()),
        "has, beyond the model, 0.bias": nn.Sequential(nn.Linear(40, 8, bias=False), nn.GELU(), nn.Linear(8, 4)),
        "lacks 1.weight": nn.Sequential(nn.Linear(40, 8), nn.LayerNorm(8), nn.Linear(8, 4)),
        "on the device meta": nn.Sequential(nn.Linear(40, 8), nn.GELU(), nn.Linear(8, 4)).to("meta"),
    }
    for what, other in wrong.items():
        before = {name: id(t) for name, t in other.state_dict(keep_vars=True).items()}
        with pytest.raises(UsageError, match=re.escape(what)):
            load(other, file, "mx_linear/torch")
        assert {name: id(t) for name, t in other.state_dict(keep_vars=True).items()} == before
    _damage(file)
    with pytest.raises(UsageError, match="damaged"):
        load(model, file)
    from safetensors.torch import save_file

    save_file({"x": torch.ones(1)}, file)
    with pytest.raises(UsageError, match="not written by assay"):
        load(model, file)


# Numbers.


def test_weights_of_whole_blocks_save_what_theory_says():
    model = nn.Sequential(nn.Linear(64, 96, bias=False), nn.Linear(96, 32, bias=False))
    with assay.swap(model, TORCH) as report:
        found = account(model, report)
    assert found.weights.saved == found.layers.saved == found.model.saved == found.model.theory == 1 - 8.25 / 32
    assert not found.model.missing and found.model.rounding == 0 and found.bits == 8.25
    with assay.swap(model.bfloat16(), TORCH):
        assert account(model).weights.saved == 1 - 8.25 / 16
    with pytest.raises(UsageError, match="nothing in this model is packed"):
        account(model)


def test_every_missing_point_has_its_reason():
    """Theory less what is missing is what is measured, in bytes of real tensors."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 45), nn.Linear(45, 64), nn.LayerNorm(64), nn.Linear(64, 10), Wider(10, 10))
    model.register_buffer("steps", torch.zeros(3, dtype=torch.int64))
    size = sum(t.numel() * t.element_size() for t in model.state_dict().values())
    with assay.swap(model, {"linear": "mx_linear/torch", "3": None}) as report:
        found = account(model, report)
        now = sum(t.numel() * t.element_size() for t in model.state_dict().values())
        text = str(found)
    assert (found.model.before, found.model.after) == (size, now)
    for scope in (found.weights, found.layers, found.model):
        assert scope.theory * 100 - sum(m.points for m in scope.missing) == pytest.approx(scope.saved * 100, abs=1e-9)
    points = {m.why: m for m in found.model.missing}
    assert points[SHORT].bytes == 64 * (2 - 45 / 32)  # a second scale for 13 elements of each row
    assert points[BIAS].bytes == 64 * 4 - 64 * 8.25 / 8
    assert points[EMBEDDINGS].bytes == 50 * 45 * (4 - 8.25 / 8)
    assert "layers left: a rule leaves it alone" in points and "norms and other parameters" in points
    assert any(why.startswith("layers left: Wider") for why in points) and "buffers" not in points
    assert "1 weights in mxint8" in text and "points of 74.2%" in text


def test_a_bert_saves_within_half_a_point_of_theory_on_its_packed_layers():
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=128, num_hidden_layers=1, num_attention_heads=2, intermediate_size=512, vocab_size=99
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    ids = torch.arange(32).view(2, 16)
    with torch.no_grad():
        exact, before = model(ids), peak(model, lambda: model(ids))
        with assay.swap(model, TORCH) as report:
            found = account(model, report)
            close = compare(exact.last_hidden_state, model(ids).last_hidden_state)
            told = peak_saved(before, peak(model, lambda: model(ids)), found)
    assert 100 * abs(found.weights.saved - 0.7421875) < 0.5
    assert found.packed == 6 and found.weights.before == 4 * (4 * 128**2 + 2 * 128 * 512)
    assert close.sqnr > 35 and close.least_cosine > 0.999 and close.astray == 0 and close.rows == 32
    assert told["before"]["held"] - told["after"]["held"] == found.model.before - found.model.after
    assert told["after"]["total"] - told["promised"] == sum(told["beyond_promise"].values())


def test_comparison_says_what_it_measured():
    exact = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]])
    got = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
    found = compare(exact, {"logits": got})
    assert found.sqnr == pytest.approx(10 * torch.log10(torch.tensor(26 / 2.0)).item())
    assert (found.least_cosine, found.cosine, found.same_choice) == (0.0, pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert (found.worst, found.relative, found.rows, found.astray) == (1.0, 0.25, 3, 0)
    assert compare(exact, exact.clone()).sqnr is None
    assert compare(exact, got / 0.0).astray > 0
    with pytest.raises(UsageError, match="different shapes"):
        compare(exact, got[:2])


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(1, 70), st.integers(1, 40), st.booleans())
def test_any_layer_goes_in_and_comes_out(rows, cols, out, bias):
    model, x = nn.Sequential(nn.Linear(cols, out, bias=bias)), torch.randn(rows, cols)
    before, plain = everything(model), model(x)
    with torch.no_grad(), assay.swap(model, TORCH):
        weight = model[0].unpacked(torch.float32)
        torch.testing.assert_close(model(x), nn.functional.linear(x, weight, model[0].bias))
    assert_same(before, everything(model))
    assert torch.equal(model(x), plain)


def test_the_page_about_packing_is_true(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "packed.md").read_text()
    blocks = re.findall(r"^```python run\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    exec("\n".join(blocks), {})
