"""Formats of a packed weight: what they hold, what they save, and how far the outputs are off."""

import re
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import assay
from assay.errors import AssayError, UsageError
from assay.models.packed import format as formats
from assay.models.packed.account import BIAS, EMBEDDINGS, SHORT, account, peak, peak_saved
from assay.models.packed.compare import compare
from assay.models.packed.format import MX_FLOATS, MxInt8
from packing import NUMBERS, TORCH, Wider, assert_same, everything, spilled

ROOT = Path(__file__).parents[2]


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
