"""Linear layers packed in a model: only packed weights stay in memory; undo gives the originals back bit for bit."""

import contextlib
import gc

import pytest
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.utils import parametrizations

import architectures
import assay
from assay.models.packed.account import account, peak, peak_saved
from assay.models.packed.compare import compare
from assay.models.packed.format import MX_FLOATS
from assay.models.packed.linear import READ, PackedLinear
from assay.models.swap import State
from packing import TORCH, Tied, Wider, assert_same, everything, layers, packed, spilled

# Into a model and out again.


@pytest.mark.slow
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


@pytest.mark.slow
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
