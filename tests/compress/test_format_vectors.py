"""Number formats give the vectors' bits, and what exact fractions give for any bits."""

import importlib.util
import json
import subprocess
import sys
from itertools import pairwise
from math import nextafter
from pathlib import Path
from struct import pack, unpack

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.compress.formats import KINDS, parse

ROOT = Path(__file__).parents[2]
VECTORS = json.loads((ROOT / "conformance" / "formats.json").read_text())["cases"]


def load_rules():
    """Their arithmetic is fractions; they import nothing of assay, nor torch."""
    spec = importlib.util.spec_from_file_location("format_rules", ROOT / "tools" / "format_rules.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXACT = load_rules()
MEANS = [name for name in EXACT.RULES if "scaled" in name or "residual" in name]
OTHERS = [name for name in EXACT.RULES if name not in MEANS]


def tensor(words, bits=32):
    unsigned, floating = (np.uint32, np.float32) if bits == 32 else (np.uint64, np.float64)
    return torch.from_numpy(np.array(words, unsigned).view(floating))


def same(a, b):
    """Bit for bit, and any NaN for a NaN."""
    view = torch.int32 if a.dtype == torch.float32 else torch.int64
    equal = a.contiguous().view(view) == b.contiguous().view(view)
    return a.dtype == b.dtype and a.shape == b.shape and bool((equal | (a.isnan() & b.isnan())).all())


def not_as_the_vectors_say(device):
    wrong = []
    for case in VECTORS:
        shape = case["rows"], case["cols"]
        x, values = (tensor([int(w, 16) for w in case[field].split()]).view(shape) for field in ("x", "values"))
        if not same(parse(case["format"]).quantized(x.to(device)).cpu(), values):
            wrong.append(f"{case['format']}: {case['about']}")
    return wrong


def stored_words(tensor):
    """As the vectors write them: bytes of the elements, and words of shared values."""
    width = tensor.element_size()
    unsigned = tensor.contiguous().view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[width])
    return " ".join(f"{word % 2 ** (8 * width):0{2 * width}x}" for word in unsigned.tolist())


def with_plain_nans(words):
    """Where a float is NaN, any NaN is right."""
    return " ".join(w if len(w) < 4 or not is_nan(w) else "nan" for w in words.split())


def is_nan(word):
    value = unpack(">f", bytes.fromhex(word.ljust(8, "0")))[0]
    return value != value


def not_coded_as_the_vectors_say(device):
    wrong = []
    for case in VECTORS:
        form = parse(case["format"])
        x = tensor([int(w, 16) for w in case["x"].split()]).view(case["rows"], case["cols"])
        coded = form.encode(x.to(device))
        shared = {name: with_plain_nans(stored_words(part)) for name, part in coded.shared.items()}
        right = {name: with_plain_nans(case[name]) for name in form.layout.shared}
        as_stored = type(coded)(
            torch.frombuffer(bytearray.fromhex(case["elements"]), dtype=torch.uint8).to(device),
            coded.shared,
            coded.shape,
        )
        values = tensor([int(w, 16) for w in case["values"].split()]).view(x.shape)
        if (
            shared != right
            or not torch.equal(coded.elements, as_stored.elements)
            or not same(form.decode(as_stored).cpu(), values)
        ):
            wrong.append(f"{case['format']}: {case['about']}")
    return wrong


def test_the_vector_file_is_what_the_rules_give():
    command = [sys.executable, ROOT / "tools" / "format_vectors.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_formats_give_the_vectors_bit_for_bit():
    assert not_as_the_vectors_say("cpu") == []


def test_formats_encode_and_decode_as_the_vectors_say():
    assert not_coded_as_the_vectors_say("cpu") == []


@pytest.mark.gpu
def test_formats_give_them_on_the_gpu():
    assert not_as_the_vectors_say("cuda") == []
    assert not_coded_as_the_vectors_say("cuda") == []


def test_every_kind_of_format_has_vectors():
    kinds = {case["format"].partition(":")[0] for case in VECTORS}
    assert kinds == set(KINDS)
    assert {case["format"] for case in VECTORS} >= {"binary:scaled", "binary:residual"}


def words_of(bits):
    """Bit patterns of floats: any at all, about one size, and around 1."""
    field, fraction = (8, 23) if bits == 32 else (11, 52)

    def near(base):
        exponent = st.integers(base, min(base + 9, 2**field - 2))
        return st.builds(
            lambda sign, e, f: sign << (bits - 1) | e << fraction | f,
            st.booleans(),
            exponent,
            st.integers(0, 2**fraction - 1),
        )

    bias = 2 ** (field - 1) - 1
    some = st.one_of(st.integers(max(0, bias - 150), bias + 128 - 1), st.just(bias - 4))
    return st.one_of(
        st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=12),
        some.flatmap(lambda base: st.lists(near(base), min_size=1, max_size=20)),
    )


def with_ties(name, words):
    """The same float64 values, then midpoints of neighbouring results and the floats on both sides of each."""
    results = EXACT.quantize(name, [[EXACT.decode(w, 64) for w in words]], 64)[0]
    sizes = sorted({float(size) for _, size in results if not isinstance(size, str)})
    middles = [(a + b) / 2 for a, b in pairwise(sizes)]
    near = [v for m in middles for v in (m, nextafter(m, 0), nextafter(m, 9e99), -m)]
    return words + [unpack(">Q", pack(">d", v))[0] for v in near]


@pytest.mark.parametrize("name", OTHERS)
@given(st.data())
@settings(max_examples=12)
def test_formats_agree_with_fractions_on_any_bits(name, data):
    bits = data.draw(st.sampled_from([32, 64]))
    words = data.draw(words_of(bits))
    if bits == 64:
        words = with_ties(name, words)
    exact = EXACT.quantize(name, [[EXACT.decode(w, bits) for w in words]], bits)[0]
    values = parse(name).quantized(tensor(words, bits)[None])
    assert same(values, tensor([EXACT.encode(v, bits) for v in exact], bits)[None])
    assert name in EXACT.WIDE or same(values.float().to(values.dtype), values), "float32 holds every value"


@pytest.mark.parametrize("name", MEANS)
@given(st.integers(20, 220), st.data())
@settings(max_examples=12)
def test_means_agree_with_fractions_where_float64_holds_the_sums(name, base, data):
    word = st.builds(
        lambda sign, e, f: sign << 31 | e << 23 | f,
        st.booleans(),
        st.integers(base, base + 11),
        st.integers(0, 2**23 - 1),
    )
    words = data.draw(st.lists(st.one_of(word, word, word, st.sampled_from([0, 1 << 31])), min_size=1, max_size=40))
    exact = EXACT.quantize(name, [[EXACT.decode(w, 32) for w in words]])[0]
    assert same(parse(name).quantized(tensor(words)[None]), tensor([EXACT.encode(v) for v in exact])[None])


@pytest.mark.parametrize(
    ("name", "dtype", "largest"),
    [
        ("minifloat:e4m3:nan", torch.float8_e4m3fn, 448.0),
        ("minifloat:e5m2:ieee", torch.float8_e5m2, 57344.0),
        ("minifloat:e5m10:ieee", torch.float16, 65504.0),
        ("minifloat:e8m7:ieee", torch.bfloat16, 3.3895313892515355e38),
    ],
)
@given(words=words_of(32))
@settings(max_examples=15)
def test_named_minifloats_are_pytorchs_types(name, dtype, largest, words):
    x = tensor(words)
    form = parse(name)
    assert form.limits == (-largest, largest)
    finite = x[x.isfinite()].clamp(-largest, largest)
    assert same(form.quantized(finite), finite.to(dtype).float())


@pytest.mark.parametrize(
    ("mx", "name"),
    [
        ("mxint8", "bfp:8:block=32"),
        ("mxfp8_e4m3", "block-minifloat:e4m3:nan:block=32"),
        ("mxfp8_e5m2", "block-minifloat:e5m2:ieee:block=32"),
        ("mxfp6_e2m3", "block-minifloat:e2m3:block=32"),
        ("mxfp6_e3m2", "block-minifloat:e3m2:block=32"),
        ("mxfp4_e2m1", "block-minifloat:e2m1:block=32"),
    ],
)
def test_mx_formats_are_block_formats(mx, name):
    if mx != "mxint8":
        pytest.importorskip("torchao")
    generator = torch.Generator().manual_seed(4)
    sizes = torch.exp2(torch.randint(-100, 120, (300, 1), generator=generator).float())
    x = torch.randn(300, 70, generator=generator) * sizes
    x[0], x[1, 40] = 0.0, float("nan")
    assert same(parse(mx).quantized(x), parse(name).quantized(x))
    assert parse(mx).bits(x.shape) == parse(name).bits(x.shape)
