"""Number formats: properties that hold for any values, the bits that a tensor takes, names, and refusals."""

import doctest
import math
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.compress.formats import parse
from assay.errors import UsageError

ROOT = Path(__file__).parents[2]
NAN, INF = math.nan, math.inf

OWN = [
    "fixed:8:4",
    "fixed:2:0",
    "fixed:25:30",
    "minifloat:e4m3",
    "minifloat:e4m3:nan",
    "minifloat:e4m3:no-denormals",
    "minifloat:e5m2:no-denormals:ieee",
    "minifloat:e8m23:ieee",
    "log:4",
    "log:8:e=3",
    "binary",
]
"""Each value by itself."""
SHARED = [
    "int:8",
    "int:2:channel",
    "int:4:group=16",
    "bfp:8:block=16",
    "bfp:2:block=7",
    "block-minifloat:e2m1:block=32",
    "block-minifloat:e4m3:no-denormals:nan:block=8",
    "block-log:4:block=16",
    "block-log:8:block=3",
    "binary:scaled",
    "binary:scaled:group=7",
    "mxint8",
]
"""With a scale that follows the data."""
RESIDUAL = ["binary:residual", "binary:residual:channel", "binary:residual:group=7"]
TORCHAO = ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4_e2m1"]

FLOATS = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(-8, 8, width=32),
    st.integers(-40, 40).map(lambda k: k / 16),
)
LISTS = st.lists(FLOATS, min_size=1, max_size=40)


def needs(name):
    if name in TORCHAO:
        pytest.importorskip("torchao")
    return parse(name)


def quantized(name, values, dtype=torch.float32):
    return needs(name).quantized(torch.tensor(values, dtype=dtype)).tolist()


# Properties.
@pytest.mark.parametrize("name", OWN + SHARED)
@given(x=LISTS, dtype=st.sampled_from([torch.float32, torch.float64]))
@settings(max_examples=8)
def test_quantising_twice_changes_nothing(name, x, dtype):
    once = parse(name).quantized(torch.tensor(x, dtype=dtype))
    twice = parse(name).quantized(once)
    assert torch.equal(once, twice) and torch.equal(once.signbit(), twice.signbit())


@pytest.mark.parametrize("name", TORCHAO)
def test_quantising_twice_changes_nothing_in_torchaos_formats_of_ordinary_size(name):
    x = torch.randn(64, 50, generator=torch.Generator().manual_seed(1))
    once = needs(name).quantized(x)
    assert torch.equal(parse(name).quantized(once), once)


@pytest.mark.parametrize("name", OWN + SHARED)
@given(x=LISTS)
@settings(max_examples=8)
def test_larger_values_stay_at_least_as_large_within_a_group(name, x):
    size = getattr(parse(name), "block", 0) or getattr(getattr(parse(name), "groups", None), "size", 0) or len(x)
    values = quantized(name, sorted(x)[:size])
    assert all(a <= b for a, b in pairwise(values))


@given(LISTS)
@settings(max_examples=40)
def test_residual_binary_keeps_the_order_where_the_second_mean_is_not_larger(x):
    values = sorted(x)
    first = torch.tensor(values).double().abs().mean().float().item()
    second = sum(abs(abs(v) - first) for v in values) / len(values)
    if second <= first * (1 - 2**-20):
        after = quantized("binary:residual", values)
        assert all(a <= b for a, b in pairwise(after))


def test_residual_binary_is_neither_monotone_nor_idempotent_in_general():
    """Means 1 and 1.5: what is near zero changes its sign."""
    once = quantized("binary:residual", [-(2.0**-40), 0.0, 0.0, 4.0])
    assert once == [0.5, -0.5, -0.5, 2.5]
    assert quantized("binary:residual", once) != once


@pytest.mark.parametrize("name", RESIDUAL)
def test_residual_binary_is_exact_where_half_of_each_group_is_above_the_mean(name):
    x = [3.0, 1.0, -3.0, -1.0, 1.0, 3.0]
    assert quantized(name, x) == x


@given(LISTS)
@settings(max_examples=40)
def test_a_second_sign_never_adds_to_the_error(x):
    exact = torch.tensor(x).double()
    errors = [
        (parse(n).quantized(exact) / 2.0**128 - exact / 2.0**128).square().sum().item()
        for n in ("binary:residual", "binary:scaled")
    ]
    largest = exact.abs().max().item() / 2.0**128
    assert errors[0] <= errors[1] + len(x) * (largest * 2.0**-20) ** 2


@pytest.mark.parametrize("name", OWN)
@given(size=st.floats(1.0, 1e260))
@settings(max_examples=8)
def test_beyond_the_limits_a_value_becomes_the_limit(name, size):
    low, high = parse(name).limits
    beyond = [min(low * size, low), max(high * size, high), low, high]
    assert quantized(name, beyond, torch.float64) == [low, high, low, high]
    ends = [-INF, INF] if "ieee" in name else [low, high]
    assert quantized(name, [-INF, INF]) == ends


@pytest.mark.parametrize(
    ("name", "x", "values"),
    [
        ("bfp:8:block=16", [1.9999, -1.9999, 1.0], [127 / 64, -127 / 64, 1.0]),
        ("bfp:2:block=16", [1.9, -1.4, 0.6, 0.5], [1.0, -1.0, 1.0, 0.0]),
        ("block-minifloat:e2m1:block=32", [7.9, -7.9, 1.0], [6.0, -6.0, 1.0]),
        ("block-log:2:block=4", [1.5, 1.42, 1.41], [2.0, 2.0, 0.0]),
        ("int:2", [5.0, -2.6, 2.5, 1.0], [5.0, -5.0, 0.0, 0.0]),
        ("int:8", [127.0, -127.4], [127.0, -127.0]),
    ],
)
def test_a_groups_largest_values_saturate_as_written(name, x, values):
    assert quantized(name, x) == values


@given(st.sampled_from([2, 3, 4, 7, 8]), LISTS)
@settings(max_examples=40)
def test_the_largest_of_a_group_of_integers_has_the_largest_code(width, x):
    values = parse(f"int:{width}").quantized(torch.tensor(x).double())
    largest = int(torch.tensor(x).double().abs().argmax())
    if abs(x[largest]) >= 2.0**-100:
        scale = values[largest].abs() / (2 ** (width - 1) - 1)
        codes = values / scale
        assert torch.equal(codes, codes.round()) and codes.abs().max() <= 2 ** (width - 1) - 1
        assert scale.bfloat16().double() == scale


@pytest.mark.parametrize(
    ("name", "x", "values"),
    [
        ("fixed:8:1", [0.25, 0.75, 1.25, -0.25, -0.75], [0.0, 1.0, 1.0, 0.0, -1.0]),
        ("int:8", [127.0, 0.5, 1.5, 2.5, -0.5, -1.5], [127.0, 0.0, 2.0, 2.0, 0.0, -2.0]),
        ("minifloat:e4m3", [1.0625, 1.1875, 2.0**-10, 3 * 2.0**-10], [1.0, 1.25, 0.0, 2.0**-8]),
        ("minifloat:e4m3:no-denormals", [2.0**-7, 1.01 * 2.0**-7, 1.0625], [0.0, 2.0**-6, 1.0]),
        ("minifloat:e2m1", [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0]),
        ("bfp:8:block=16", [1.0, 1 / 128, 3 / 128, -5 / 128], [1.0, 0.0, 2 / 64, -2 / 64]),
        ("log:4", [1.4142135 / 2, 1.4142137 / 2, 0.75, 2.0**-6 * 0.7071, 2.0**-6 * 0.7072], [0.5, 1, 1, 0, 2.0**-6]),
        ("binary", [0.0, -0.0, 1e-30, -1e-30, NAN], [1.0, 1.0, 1.0, -1.0, 1.0]),
        ("binary:scaled", [3.0, -1.0, 0.0, -0.0], [1.0, -1.0, 1.0, 1.0]),
    ],
)
def test_ties_go_where_the_rule_says(name, x, values):
    assert quantized(name, x) == values


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("fixed:8:4", [k / 16 for k in range(-128, 128)]),
        ("fixed:3:10", [k / 1024 for k in range(-4, 4)]),
        ("int:8", [k * 1.5 for k in range(-127, 128)]),
        ("int:4:group=15", [k * 2.0**-100 for k in range(-7, 8)]),
        ("minifloat:e3m2", [s * f * 2.0**e for s in (1, -1) for e in range(-2, 5) for f in (1, 1.25, 1.5, 1.75)]),
        ("minifloat:e3m2", [k / 16 for k in range(-4, 5)]),
        ("log:4", [s * 2.0**e for s in (1, -1) for e in range(-6, 1)]),
        ("bfp:6:block=64", [k / 8 for k in range(-31, 32)]),
        ("block-minifloat:e2m1:block=16", [s * 8 * v for v in (0, 0.5, 1, 1.5, 2, 3, 4, 6) for s in (1, -1)]),
        ("block-log:3:block=8", [8.0, 4.0, 2.0, -8.0, -4.0, -2.0, 0.0, -0.0]),
        ("binary", [1.0, -1.0]),
        ("binary:scaled:group=3", [0.3125, -0.3125, 0.3125, -7.0, 7.0]),
        ("mxint8", [k / 64 for k in range(96, 128)]),
    ],
)
def test_what_a_format_holds_it_keeps(name, values):
    assert quantized(name, values) == values


# Zeros and what is not finite.
@pytest.mark.parametrize("name", OWN + SHARED + RESIDUAL + TORCHAO)
def test_zeros_stay_zeros_with_the_sign_that_the_format_has(name):
    values = needs(name).quantized(torch.tensor([0.0, -0.0, 0.0]))
    if name == "binary":
        assert values.tolist() == [1.0, 1.0, 1.0]
        return
    signed = name.startswith(("minifloat", "log", "block", "mxfp"))
    assert values.tolist() == [0.0, 0.0, 0.0]
    assert values.signbit().tolist() == [False, signed, False]


@pytest.mark.parametrize("name", OWN)
def test_nan_becomes_zero_where_there_is_no_code_for_it(name):
    value = quantized(name, [NAN])[0]
    if "nan" in name or "ieee" in name:
        assert math.isnan(value)
    else:
        assert value == (1.0 if name == "binary" else 0.0) and math.copysign(1, value) == 1


@pytest.mark.parametrize("name", [*SHARED, *RESIDUAL])
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_what_is_not_finite_makes_its_group_nan_and_no_other(name, bad):
    x = torch.ones(2, 70)
    x[0, 69] = bad
    lost = parse(name).quantized(x).isnan()
    size = 32 if name == "mxint8" else getattr(parse(name), "block", 0) or parse(name).groups.size
    if size:
        assert lost[0].tolist() == [i // size == 69 // size for i in range(70)] and not lost[1].any()
    else:
        assert lost[0].all() and bool(lost[1].all()) != ("channel" in name)


# Bits.
@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("fixed:8:4", 111 * 8),
        ("int:8", 111 * 8 + 16),
        ("int:4:channel", 111 * 4 + 3 * 16),
        ("int:9:channel", 111 * 9 + 3 * 32),
        ("fixed:32:16", 111 * 32),
        ("int:4:group=36", 111 * 4 + 6 * 16),
        ("minifloat:e4m3:nan", 111 * 8),
        ("minifloat:e2m1", 111 * 4),
        ("log:5", 111 * 5),
        ("bfp:8:block=37", 111 * 8 + 3 * 8),
        ("block-minifloat:e3m2:block=32", 111 * 6 + 6 * 8),
        ("block-log:4:block=10", 111 * 4 + 12 * 8),
        ("binary", 111),
        ("binary:scaled:channel", 111 + 3 * 32),
        ("binary:residual", 111 * 2 + 2 * 32),
        ("mxfp6_e2m3", 111 * 6 + 6 * 8),
    ],
)
def test_bits_count_scales_and_short_blocks(name, bits):
    assert parse(name).bits((3, 37)) == bits
    assert parse(name).bits((0, 37)) == parse(name).bits((3, 0)) == 0
    assert parse(name).bits(()) == parse(name).bits((1,)) == parse(name).bits((1, 1))


# Tensors.
@pytest.mark.parametrize("name", OWN + SHARED + RESIDUAL + TORCHAO)
def test_any_shape_and_strides(name):
    form = needs(name)
    x = torch.randn(4, 6, 10, generator=torch.Generator().manual_seed(2))
    before = x.clone()
    for view in (x.permute(2, 0, 1), x[:, ::2, 1::3], x[0].t(), x[0, 0, 0], x[:, :, 0], x[0, :1].expand(5, 10)):
        values = form.quantized(view)
        assert values.shape == view.shape and values.dtype == view.dtype
        assert torch.equal(values, form.quantized(view.contiguous()))
        assert torch.equal(form.quantized(view.double()), values.double())
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 4)):
        assert form.quantized(torch.empty(shape)).shape == shape
    assert torch.equal(x, before)


def test_channels_are_rows_of_the_first_axis_and_groups_run_along_the_last():
    x = torch.tensor([[1.0, 2.0, 9.0], [10.0, 30.0, 50.0]])
    assert parse("binary:scaled:channel").quantized(x).tolist() == [[4.0] * 3, [30.0] * 3]
    assert parse("binary:scaled:group=2").quantized(x).tolist() == [[1.5, 1.5, 9.0], [20.0, 20.0, 50.0]]
    assert parse("binary:scaled").quantized(x).tolist() == [[17.0] * 3] * 2
    assert parse("binary:scaled:channel").quantized(x[0]).tolist() == [4.0] * 3


def test_the_default_dtype_changes_nothing():
    x = torch.tensor([2.0**-7, 1.2 * 2.0**-126, -(2.0**-126), 0.0, 3.0])
    names = [n for n in (*OWN, *SHARED, *RESIDUAL, "minifloat:e8m7:no-denormals:ieee") if n != "mxint8"]
    before = [parse(name).quantized(x) for name in names]
    torch.set_default_dtype(torch.float16)
    try:
        after = [parse(name).quantized(x) for name in names]
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(map(torch.equal, before, after))


def test_other_types_are_refused():
    for x in (torch.ones(3, dtype=torch.bfloat16), torch.ones(3, dtype=torch.int32)):
        with pytest.raises(UsageError, match=r"x\.float\(\)"):
            parse("fixed:8:4").quantized(x)


# Names.
@pytest.mark.parametrize("name", OWN + SHARED + RESIDUAL + TORCHAO)
def test_a_name_reads_back_as_its_format(name):
    assert parse(name).name == name and parse(parse(name).name) == parse(name)
    assert hash(parse(name)) == hash(parse(name.upper()))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fixd:8:4", "no number format called 'fixd'.*did you mean fixed"),
        ("", "there are fixed, int"),
        ("fixed:1:0", "width 1 .*from 2 to 32, for example fixed:8:4"),
        ("fixed:8:127", "fraction 127 .*from 0 to 126"),
        ("fixed:8:-1", "fraction -1 .*from 0 to 126"),
        ("fixed:8", "write fixed:WIDTH:FRACTION"),
        ("fixed:8:x", "fraction is not an integer: 'x'"),
        ("int:1", "width 1 .*from 2 to 32"),
        ("int:33", "width 33 .*from 2 to 32"),
        ("int", "write int:WIDTH"),
        ("int:4:group=", "int:4:group=128"),
        ("int:4:group=0", "group or block of 0 elements"),
        ("int:4:rows", "int:WIDTH:channel"),
        ("minifloat:e9m2", "exponent width 9 .*from 2 to 8"),
        ("minifloat:e4m0", "fraction width 0 .*from 1 to 23"),
        ("minifloat:e8m7", "write minifloat:e8m7:ieee"),
        ("minifloat:4:3", "write minifloat:eEmM"),
        ("minifloat:e4m3:inf", "write minifloat:eEmM"),
        ("log:9", "width 9 .*from 2 to 8"),
        ("log:8:e=128", "largest exponent 128 .*to 127"),
        ("log:8:e=-24", "largest exponent -24 .*from -23"),
        ("bfp:8", "write bfp:WIDTH:block=N"),
        ("bfp:25:block=8", "width 25 .*from 2 to 24"),
        ("bfp:8:channel", "write bfp:WIDTH:block=N"),
        ("block-minifloat:e6m1:block=8", "exponent width 6 .*from 2 to 5"),
        ("block-minifloat:e5m9:block=8", "fraction width 9 .*from 1 to 8"),
        ("block-minifloat:e8m2:block=8", "write block-minifloat"),
        ("block-minifloat:e2m1", "write block-minifloat"),
        ("block-log:4", "write block-log:WIDTH:block=N"),
        ("binary:big", "binary:scaled:channel"),
        ("binary:residual:rows", "binary:residual:channel"),
        ("mxint8:32", "has no parameters"),
        ("mxint4", "did you mean mxint8"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_write(text, says):
    with pytest.raises(UsageError, match=f"(?s){says}"):
        parse(text)


@pytest.mark.parametrize("page", ["docs/formats.md", "docs/compress.md", "conformance/README.md"])
def test_the_pages_examples_run(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(str(ROOT / page), module_relative=False)
    assert result.attempted > 5 and result.failed == 0
