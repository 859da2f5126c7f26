"""Weights packed as integers with a scale per group: the rule's values, true bytes, in models and files."""

import copy
import io

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import assay
from assay.compress.formats import parse
from assay.errors import UsageError
from assay.models.packed import integers
from assay.models.packed.account import account
from assay.models.packed.checkpoint import load, save
from assay.models.packed.format import Integer, find
from assay.models.packed.packing import kernel_of, packing
from assay.models.swap import State
from packing import NUMBERS, Tied, assert_same, everything, layers, packed

GROUPS = (0, 1, 3, 16, 32, 128)


def rule(kind):
    """The same format by the rule in docs/formats.md."""
    return parse(f"int:{kind.width}:" + (f"group={kind.group}" if kind.group else "channel"))


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from((4, 8)), st.sampled_from(GROUPS), st.integers(1, 4), st.integers(1, 70), st.integers(), st.data()
)
def test_packing_gives_the_values_of_the_formats_rule(width, group, rows, cols, seed, data):
    """Bit for bit, at any scale, short groups, odd rows and values that are not finite included."""
    kind, number = Integer(width, group), data.draw(st.sampled_from(NUMBERS))
    rng = torch.Generator().manual_seed(seed % 2**32)
    weight = torch.randn(rows, cols, generator=rng) * 2.0 ** data.draw(st.integers(-140, 126))
    if data.draw(st.booleans()):
        weight[0, data.draw(st.integers(0, cols - 1))] = data.draw(
            st.sampled_from((torch.nan, torch.inf, -torch.inf, 0.0, 3.4e38, 1e-45))
        )
    weight = weight.to(number)
    made = kind.pack(weight)
    assert (made.elements.shape, made.scales.shape) == kind.extents(rows, cols)
    assert made.elements.dtype == torch.uint8 and made.scales.dtype == torch.int16
    once = kind.unpack(made, cols, torch.float32)
    wanted = rule(kind).quantized(weight.float())
    assert torch.equal(once.nan_to_num(nan=7.0), wanted.nan_to_num(nan=7.0))
    assert torch.equal(once.isnan(), wanted.isnan())
    again = kind.pack(once)
    assert torch.equal(kind.unpack(again, cols, torch.float32).nan_to_num(nan=7.0), once.nan_to_num(nan=7.0))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 15), min_size=7, max_size=7), min_size=1, max_size=4), st.integers(1, 7))
def test_two_codes_fill_a_byte_the_first_in_its_lower_half(codes, cols):
    given = torch.tensor(codes, dtype=torch.uint8)[:, :cols]
    pairs = integers.paired(given)
    assert pairs.shape == (len(codes), (cols + 1) // 2) and torch.equal(integers.unpaired(pairs, cols), given)
    assert torch.equal(pairs[:, 0] & 15, given[:, 0])
    assert cols % 2 == 0 or bool((pairs[:, -1] >> 4 == 8).all()), "an odd one out is beside a zero"


def test_a_large_weight_is_packed_a_slab_at_a_time_with_the_same_bits(monkeypatch):
    weight = torch.randn(37, 70)
    whole = integers.quantized(weight, 4, 32)
    monkeypatch.setattr(integers, "SLAB", 200)
    assert all(torch.equal(a, b) for a, b in zip(whole, integers.quantized(weight, 4, 32), strict=True))


@pytest.mark.parametrize(
    ("name", "width", "group"), [("int8", 8, 128), ("int4:group=64", 4, 64), ("int8:channel", 8, 0)]
)
def test_a_format_is_found_by_its_name(name, width, group):
    kind = find(name)
    assert kind == Integer(width, group) and find(kind.name) == kind
    assert kind.bits == width + (16 / group if group else 0)


@pytest.mark.parametrize("name", ["int5", "int4:", "int4:group=0", "int4:group=x", "int8:tensor", "int4:group=9999999"])
def test_a_format_that_is_none_is_refused_with_an_example(name):
    model = nn.Sequential(nn.Linear(4, 4))
    with pytest.raises(UsageError, match=r"(?s)no format called.*int4:group=128"):
        assay.swap(model, {"linear": name})
    assert type(model[0]) is nn.Linear


def test_a_rule_may_name_the_language_beside_the_format():
    assert kernel_of("int8:channel/cuda") == "int_linear/cuda" and kernel_of("int4") == "int_linear"
    assert kernel_of("gelu/triton") == "gelu/triton"
    assert packing("int4") is packing("int4:group=128") and packing("gelu") is None
    model = nn.Sequential(nn.Linear(40, 8))
    with assay.swap(model, {"linear": "int8:group=32/torch"}) as report:
        assert (model[0].format.name, model[0].kernel) == ("int8:group=32", "int_linear/torch")
        assert report.sites[0].kernel == "int_linear/torch"
    with pytest.raises(UsageError, match="int_linear/fortran"):
        assay.swap(model, {"linear": "int8/fortran"})


@pytest.mark.parametrize("value", ["int_linear", "int8:group=32", "int4:channel/torch"])
def test_it_goes_into_a_model_and_out_again(value):
    model, inputs = layers()
    before, plain = everything(model), model(*inputs)
    with torch.no_grad(), assay.swap(model, {"linear": value}):
        mine = model(*inputs)
        kinds = {m.format.name for m in packed(model)}
        for module in packed(model):
            x = torch.randn(3, module.in_features)
            wanted = nn.functional.linear(x, module.unpacked(torch.float32), module.bias)
            torch.testing.assert_close(module.multiply(x, module.bias), wanted)
    assert len(kinds) == 1 and not torch.equal(mine, plain)
    assert_same(before, everything(model))
    assert torch.equal(model(*inputs), plain)


def test_true_bytes_are_codes_and_scales():
    model = nn.Sequential(nn.Linear(256, 64, bias=False), nn.Linear(64, 33, bias=False)).bfloat16()
    with assay.swap(model, {"linear": "int4:group=64"}) as report:
        found = account(model, report)
        assert found.weights.saved == found.weights.theory == 1 - 4.25 / 16
    odd = nn.Sequential(nn.Linear(33, 10, bias=False))
    with assay.swap(odd, {"linear": "int4:group=32"}) as report:
        assert account(odd, report).weights.after == 10 * (17 + 2 * 2)  # half a byte and 31 of a group are not used


def test_casting_the_model_leaves_codes_and_scales_alone():
    model, x = nn.Sequential(nn.Linear(64, 8)), torch.randn(2, 64)
    with torch.no_grad(), assay.swap(model, {"linear": "int4:group=32/torch"}):
        weight = model[0].unpacked(torch.float32)
        model.half()
        assert torch.equal(model[0].unpacked(torch.float32), weight)
        # Weights are not rounded to fp16: only x and the result are.
        exact = nn.functional.linear(x.half().float(), weight, model[0].bias.float()).half()
        torch.testing.assert_close(model(x.half()), exact, rtol=1e-3, atol=1e-3)
        model.float()
        assert torch.equal(model[0].unpacked(torch.float32), weight)


def test_layers_that_share_a_weight_share_its_packed_copy():
    model = Tied()
    with assay.swap(model, {"linear": "int8:group=32"}):
        assert model.first.elements.data_ptr() == model.second.elements.data_ptr()
    with assay.swap(model, {"first": "int8:group=32", "second": "int4:channel", "own": "int8"}) as report:
        left = {s.path: s.why for s in report.sites if s.state is State.LEFT}
    assert left.keys() == {"first", "second"} and all("shares its memory" in why for why in left.values())


@pytest.mark.parametrize("value", ["int4:group=32", "int8:channel"])
def test_a_file_keeps_it_packed_and_copies_find_their_kernel(value, tmp_path):
    model, x = nn.Sequential(nn.Linear(70, 12), nn.ReLU(), nn.Linear(12, 5)), torch.randn(3, 70)
    with torch.no_grad(), assay.swap(model, {"linear": value}):
        wanted = model(x)
        save(model, tmp_path / "packed.safetensors")
        assert torch.equal(copy.deepcopy(model)(x), wanted)
        buffer = io.BytesIO()
        torch.save(copy.deepcopy(model[0]), buffer)
        buffer.seek(0)
        assert torch.load(buffer, weights_only=False).kernel == "int_linear/torch"
    for kernel in ("", None, "int_linear/torch"):
        fresh = nn.Sequential(nn.Linear(70, 12), nn.ReLU(), nn.Linear(12, 5))
        assert load(fresh, tmp_path / "packed.safetensors", kernel) == ["0", "2"]
        with torch.no_grad():
            torch.testing.assert_close(fresh(x), wanted)
        assert fresh[0].kernel == ("" if kernel is None else "int_linear/torch")


def test_gradients_flow_past_the_frozen_weight():
    model, x = nn.Sequential(nn.Linear(45, 7)), torch.randn(2, 45, requires_grad=True)
    with assay.swap(model, {"linear": "int4:group=16/torch"}):
        model(x).sum().backward()
        torch.testing.assert_close(x.grad, model[0].unpacked(torch.float32).sum(0).expand(2, -1))
        assert model[0].bias.grad.tolist() == [2.0] * 7
