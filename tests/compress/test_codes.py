"""What a format encodes is what it holds: it decodes to the quantised values, and takes the bits that it says."""

import math
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.compress.formats import Coded, parse
from assay.errors import UsageError

OWN = [
    "fixed:8:4",
    "fixed:2:0",
    "fixed:25:126",
    "fixed:26:3",
    "fixed:32:16",
    "int:8",
    "int:2:channel",
    "int:4:group=16",
    "int:9",
    "int:16:channel",
    "int:31:group=5",
    "int:32",
    "minifloat:e4m3",
    "minifloat:e4m3:nan",
    "minifloat:e3m2:no-denormals",
    "minifloat:e5m2:no-denormals:ieee",
    "minifloat:e8m23:ieee",
    "log:2:e=-3",
    "log:8:e=3",
    "bfp:8:block=16",
    "bfp:2:block=7",
    "bfp:24:block=5",
    "block-minifloat:e2m1:block=32",
    "block-minifloat:e4m3:no-denormals:nan:block=8",
    "block-log:4:block=16",
    "block-log:8:block=3",
    "binary",
    "binary:scaled",
    "binary:scaled:group=7",
    "binary:residual",
    "binary:residual:channel",
    "binary:residual:group=7",
    "mxint8",
]
TORCHAO = ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4_e2m1"]
SHAPES = [(), (0,), (3, 0), (1,), (8,), (3, 37), (2, 3, 33)]


def needs(name):
    if name in TORCHAO:
        pytest.importorskip("torchao")
    return parse(name)


def same(a, b):
    """Bit for bit, and any NaN for a NaN."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(patterns(a), patterns(b))


def patterns(x):
    return torch.where(x.isnan(), 0x7FC00000, x.contiguous().view(torch.int32))


def of_shape(shape, words):
    return torch.tensor(words, dtype=torch.int64).to(torch.int32).view(torch.float32).view(shape)


ANY_BITS = st.integers(-(2**31), 2**31 - 1)
WORDS = st.one_of(ANY_BITS, st.sampled_from([0, -(2**31), 0x7FC00000, 0x7F800000]))
ORDINARY_WORDS = st.builds(
    lambda sign, e, f: e << 23 | f | (-(2**31) if sign else 0),
    st.booleans(),
    st.integers(110, 135),
    st.integers(0, 2**23 - 1),
)


@pytest.mark.parametrize("name", OWN + TORCHAO)
@given(data=st.data(), shape=st.sampled_from(SHAPES))
@settings(max_examples=12)
def test_what_was_encoded_decodes_to_the_quantised_values(name, data, shape):
    form, count = needs(name), math.prod(shape)
    words = data.draw(
        st.sampled_from([WORDS, ORDINARY_WORDS]).flatmap(lambda w: st.lists(w, min_size=count, max_size=count))
    )
    x = of_shape(shape, words)
    for given_as in (x, x.double() * data.draw(st.sampled_from([1.0, 1 + 2.0**-40, 2.0**200, 2.0**-200]))):
        coded = form.encode(given_as)
        assert same(form.decode(coded), form.quantized(given_as).float())
        assert coded.shape == shape and coded.elements.dtype == torch.uint8
        assert 8 * coded.nbytes == -(-form.bits(shape) // 8) * 8


@pytest.mark.parametrize("name", OWN + TORCHAO)
def test_codes_are_the_same_whatever_the_strides(name):
    form = needs(name)
    x = torch.randn(4, 6, 10, generator=torch.Generator().manual_seed(2))
    for view in (x.permute(2, 0, 1), x[:, ::2, 1::3], x[0].t(), x[0, :1].expand(5, 10)):
        coded, plain = form.encode(view), form.encode(view.contiguous())
        assert all(torch.equal(a, b) for a, b in zip(coded.tensors.values(), plain.tensors.values(), strict=True))


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        ("fixed:8:4", {}),
        ("int:8:group=10", {"scales": (torch.bfloat16, 12)}),
        ("int:9:channel", {"scales": (torch.float32, 3)}),
        ("bfp:8:block=16", {"exponents": (torch.uint8, 9)}),
        ("block-log:4:block=37", {"exponents": (torch.uint8, 3)}),
        ("block-minifloat:e2m1:block=32", {"exponents": (torch.uint8, 6)}),
        ("binary:scaled", {"means": (torch.float32, 1)}),
        ("binary:residual:channel", {"first": (torch.float32, 3), "second": (torch.float32, 3)}),
        ("mxint8", {"exponents": (torch.uint8, 6)}),
    ],
)
def test_shared_values_are_stored_in_the_type_that_the_rule_names(name, shared):
    coded = parse(name).encode(torch.ones(3, 37))
    assert {part: (t.dtype, t.numel()) for part, t in coded.shared.items()} == shared


@pytest.mark.parametrize(
    ("name", "x", "elements"),
    [
        ("fixed:8:4", [-8.0, -1 / 16, 0.0, -0.0, 7.9375], "80ff00007f"),
        ("fixed:12:4", [1.0, -1 / 16], "10f0ff"),
        ("fixed:32:0", [-1.0, 3e9], "ffffffffffffff7f"),
        ("int:4", [7.0, -7.0, -1.0, 1.0], "971f"),
        ("minifloat:e4m3:nan", [1.0, -448.0, math.nan, math.inf, -0.0], "38fe7f7e80"),
        ("minifloat:e5m2:ieee", [1.0, math.nan, -math.inf, 2.0**-16], "3c7efc01"),
        ("minifloat:e8m7:ieee", [1.0, -2.0, math.nan], "803f00c0c07f"),
        ("minifloat:e2m1:no-denormals", [0.0, 1.0, -6.0, -0.0], "208f"),
        ("log:4", [1.0, 0.0, -0.0, -(2.0**-6)], "0798"),
        ("bfp:8:block=2", [1.0, -0.5, 0.0, 0.0], "40e00000"),
        ("block-log:4:block=4", [8.0, -4.0, 0.0, -0.0], "e780"),
        ("binary", [-1.0, 1.0, -0.0, math.nan, 1, 1, 1, -1, -1], "8101"),
        ("binary:residual", [1.0, -3.0, 3.5, -0.5], "4e"),
    ],
)
def test_codes_are_laid_out_as_written(name, x, elements):
    assert bytes(parse(name).encode(torch.tensor(x)).elements.tolist()).hex() == elements


@pytest.mark.parametrize("name", ["minifloat:e4m3:nan", "minifloat:e5m2:ieee"])
def test_every_code_of_fp8_stands_for_what_pytorch_reads(name):
    dtype = torch.float8_e4m3fn if "e4m3" in name else torch.float8_e5m2
    codes = torch.arange(256, dtype=torch.uint8)
    values = parse(name).decode(Coded(codes, {}, (256,)))
    assert same(values, codes.view(dtype).float())
    numbers = ~values.isnan()
    assert torch.equal(parse(name).encode(values).elements[numbers], codes[numbers])


@pytest.mark.parametrize("name", ["fixed:8:4", "minifloat:e4m3", "minifloat:e3m4:nan", "log:8:e=3"])
def test_every_code_of_eight_bits_reads_back(name):
    codes = torch.arange(256, dtype=torch.uint8)
    values = parse(name).decode(Coded(codes, {}, (256,)))
    numbers = ~values.isnan()
    assert torch.equal(parse(name).encode(values).elements[numbers], codes[numbers])
    assert numbers.sum() == (254 if "nan" in name else 256)


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
def test_mx_formats_have_the_codes_of_block_formats(mx, name):
    x = torch.randn(5, 70, generator=torch.Generator().manual_seed(4))
    ours, theirs = needs(mx).encode(x), parse(name).encode(x)
    assert torch.equal(ours.elements, theirs.elements)
    assert torch.equal(ours.shared["exponents"], theirs.shared["exponents"])


def test_a_group_of_nan_has_no_codes_but_its_scale():
    x = torch.tensor([[1.0, -2.0, math.nan], [4.0, -4.0, 4.0]])
    for name in ("int:8:channel", "bfp:8:block=3", "block-log:8:block=3", "block-minifloat:e4m3:block=3"):
        assert parse(name).encode(x).elements[:3].tolist() == [0, 0, 0]
    assert parse("int:8:channel").encode(x).shared["scales"].isnan().tolist() == [True, False]
    assert parse("bfp:8:block=3").encode(x).shared["exponents"].tolist() == [255, 129]


def test_codes_survive_a_file():
    form, x = parse("int:4:group=16"), torch.randn(5, 33)
    assert torch.equal(form.decode(pickle.loads(pickle.dumps(form.encode(x)))), form.quantized(x))


def test_the_default_dtype_changes_nothing():
    x = torch.randn(3, 37, generator=torch.Generator().manual_seed(5))
    before = [parse(name).decode(parse(name).encode(x)) for name in OWN if name != "mxint8"]
    torch.set_default_dtype(torch.float16)
    try:
        after = [parse(name).decode(parse(name).encode(x)) for name in OWN if name != "mxint8"]
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(map(torch.equal, before, after))


def test_what_another_format_encoded_is_refused():
    coded = parse("int:4").encode(torch.ones(3, 5))
    for name in ("int:4:channel", "int:5", "int:9", "fixed:4:0", "bfp:4:block=5"):
        with pytest.raises(UsageError, match=r"(?s)shape \(3, 5\).*decode with the format that encoded it"):
            parse(name).decode(coded)
    with pytest.raises(UsageError, match=r"elements of 8 uint8.*elements of 7 uint8"):
        parse("int:4").decode(Coded(coded.elements[:7], coded.shared, coded.shape))
    with pytest.raises(UsageError, match=r"x\.float\(\)"):
        parse("int:4").encode(torch.ones(3, dtype=torch.bfloat16))
