"""Fixed point above 25 bits and integers above 8, which float32 need not hold; and arithmetic without float64."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.compress.formats import parse

FLOATS = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(-8, 8, width=32),
    st.integers(-(2**24), 2**24).map(float),
)
LISTS = st.lists(FLOATS, min_size=1, max_size=40)
FIXED = ["fixed:26:0", "fixed:28:40", "fixed:32:0", "fixed:32:16", "fixed:32:126"]


# Fixed point.
@pytest.mark.parametrize("name", FIXED)
@given(x=LISTS, dtype=st.sampled_from([torch.float32, torch.float64]))
@settings(max_examples=10)
def test_wide_fixed_point_is_idempotent_and_monotone(name, x, dtype):
    form = parse(name)
    once = form.quantized(torch.tensor(sorted(x), dtype=dtype))
    assert torch.equal(form.quantized(once), once)
    assert all(a <= b for a, b in pairwise(once.tolist()))


@pytest.mark.parametrize("name", FIXED)
def test_float64_holds_the_largest_value_and_float32_the_power_of_two_beside_it(name):
    form = parse(name)
    ends = torch.tensor([-math.inf, -1e30, 1e30, math.inf])
    low, high = form.limits
    assert form.quantized(ends.double()).tolist() == [low, low, high, high]
    assert form.quantized(ends).tolist() == [low, low, -low, -low]
    assert high < -low == torch.tensor(high).item()


@pytest.mark.parametrize("name", FIXED)
@given(x=LISTS)
@settings(max_examples=10)
def test_what_a_float32_becomes_float32_holds_below_the_largest_value(name, x):
    form = parse(name)
    wide = form.quantized(torch.tensor(x).double())
    below = wide < form.limits[1]
    assert torch.equal(form.quantized(torch.tensor(x)).double()[below], wide[below])


# Integers.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(width=st.integers(9, 24), x=LISTS)
@settings(max_examples=60)
def test_integers_up_to_24_bits_are_idempotent(width, x, dtype):
    form = parse(f"int:{width}")
    once = form.quantized(torch.tensor(x, dtype=dtype))
    assert torch.equal(form.quantized(once), once)


@pytest.mark.parametrize("width", range(2, 25))
def test_they_are_for_many_scales_and_at_the_end_of_float32(width):
    x = torch.rand(4000, 3, generator=torch.Generator().manual_seed(width))
    x[:3] = 3.4028234663852886e38 * torch.tensor([[1.0], [1 - 2.0**-23], [0.9]])
    once = parse(f"int:{width}:channel").quantized(x)
    assert once.isfinite().all() and torch.equal(parse(f"int:{width}:channel").quantized(once), once)


def test_wider_integers_need_not_be():
    x = torch.rand(1000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    once = parse("int:25:channel").quantized(x)
    assert not torch.equal(parse("int:25:channel").quantized(once), once)


@given(st.integers(9, 32), LISTS, st.sampled_from([torch.float32, torch.float64]))
@settings(max_examples=60)
def test_larger_values_stay_at_least_as_large(width, x, dtype):
    values = parse(f"int:{width}").quantized(torch.tensor(sorted(x), dtype=dtype)).tolist()
    assert all(a <= b for a, b in pairwise(values))


@given(st.integers(9, 32), LISTS)
@settings(max_examples=60)
def test_a_value_is_off_by_half_a_scale_and_what_float32_rounds(width, x):
    coded = parse(f"int:{width}").encode(torch.tensor(x))
    values = parse(f"int:{width}").quantized(torch.tensor(x))
    scale = Fraction(coded.shared["scales"].item())
    for before, after in zip(torch.tensor(x).tolist(), values.tolist(), strict=True):
        off = abs(Fraction(after) - Fraction(before))
        # The second part is where the scale was rounded down, so that the largest values saturate.
        assert off <= scale / 2 + abs(Fraction(before)) / 2**23


@given(st.integers(9, 24), LISTS)
@settings(max_examples=60)
def test_the_largest_has_the_largest_code(width, x):
    form, exact = parse(f"int:{width}"), torch.tensor(x).double()
    largest = exact.abs().max()
    if largest >= 2.0**-90:
        scale = form.encode(exact).shared["scales"].double()
        most = 2 ** (width - 1) - 1
        assert form.quantized(exact).abs().max() == most * scale.item()


@pytest.mark.parametrize(
    ("name", "step", "most"), [("int:12", 1.5, 2047), ("int:16", 0.25, 32767), ("int:24", 2.0, 8388607)]
)
def test_what_a_wide_integer_format_holds_it_keeps(name, step, most):
    values = torch.tensor([0.0, 1.0, -1.0, 2.0, 1000.0, 1.0 - most, float(most)]) * step
    assert torch.equal(parse(name).quantized(values), values)


# float32 without float64: the same bits as by the rule in float64.
def neighbours(values):
    """The float32 values and the four around each."""
    words = values.float().view(torch.int32)
    return torch.cat([(words + d).view(torch.float32) for d in (-2, -1, 0, 1, 2)])


EXTREMES = torch.tensor([0.0, -0.0, 1e-45, -1e-45, 2.0**-126, 2.0**-127, 3.4028235e38, -3.4028235e38])
SPECIALS = torch.tensor([math.nan, math.inf, -math.inf])


@pytest.mark.parametrize(
    "name", ["fixed:2:0", "fixed:8:4", "fixed:16:8", "fixed:25:30", "fixed:25:126", "fixed:32:0", "fixed:26:126"]
)
def test_fixed_point_in_float32_is_what_float64_gives(name):
    form = parse(name)
    low, high = form.limits
    step = 2.0**-form.fraction
    ties = (torch.arange(-600, 600).double() + 0.5) * step
    far = (torch.arange(-40, 40).double() * 2.0 ** max(0, form.width - 8) + 0.5) * step
    ends = torch.tensor([low, high, low - step / 2, high + step / 2, low * 2, high * 2], dtype=torch.float64)
    x = torch.cat([neighbours(torch.cat([ties, far, ends, EXTREMES.double()])), SPECIALS, EXTREMES])
    by_rule = form.quantized(x.double()).float()
    values = form.quantized(x)
    assert torch.equal(values, by_rule) and torch.equal(values.signbit(), by_rule.signbit())
    assert torch.equal(form.decode(form.encode(x)), values)


@pytest.mark.parametrize("width", [*range(2, 9), 9, 12, 16, 24, 29, 30, 31, 32])
def test_integers_in_float32_are_what_exact_products_give(width):
    """Rows whose largest value fixes the scale, and beside it the floats at and next to the ties of that scale."""
    form, most = parse(f"int:{width}:channel"), 2 ** (width - 1) - 1
    generator = torch.Generator().manual_seed(width)
    exponents = torch.cat(
        [torch.tensor([-149, -140, -127, -126, -119, 120, 127]), torch.randint(-110, 110, (120,), generator=generator)]
    )
    largest = (
        ((1 + torch.rand(len(exponents), generator=generator).double()) * torch.exp2(exponents.double()))
        .clamp(max=3.4e38)
        .float()
    )
    scale = form.encode(largest[:, None]).shared["scales"].double()
    codes = torch.cat(
        [torch.arange(0, 140).double(), torch.logspace(0, width - 1, 60, base=2, dtype=torch.float64).floor()]
    )
    ties = (codes.clamp(max=most) + 0.5) * scale[:, None]
    words = ties.float().view(torch.int32)
    near = torch.cat([(words + d).clamp(min=0).view(torch.float32) for d in (-1, 0, 1)], -1)
    x = torch.cat([largest[:, None], torch.minimum(near, largest[:, None]), -torch.minimum(near, largest[:, None])], -1)
    assert torch.equal(form.quantized(x), form.decode(form.encode(x)))
    assert torch.equal(form.quantized(x), form.quantized(x.double()).float())
    assert not form.quantized(x).signbit()[x >= 0].any()
