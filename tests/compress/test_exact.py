"""Quotients are rounded to integers as fractions are, also where float64 does not hold the tie."""

from fractions import Fraction
from math import inf, nextafter

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.compress.formats.exact import nearest, product

STEPS = st.builds(lambda digits, place: digits * 2.0**place, st.integers(1, 2**31 - 1), st.integers(-157, 90))
COUNTS = st.one_of(st.integers(0, 2**31), st.integers(0, 300), st.integers(2**28, 2**31))


@given(STEPS, COUNTS)
@settings(max_examples=150)
def test_nearest_decides_at_and_beside_ties_as_fractions_do(step, count):
    tie = float(Fraction(step) * (2 * count + 1) / 2)
    sizes = [nextafter(tie, 0), tie, nextafter(tie, inf)]
    made = nearest(torch.tensor(sizes, dtype=torch.float64), torch.tensor(step, dtype=torch.float64))
    assert made.tolist() == [round(Fraction(size) / Fraction(step)) for size in sizes]


@given(STEPS, COUNTS)
@settings(max_examples=80)
def test_a_product_and_what_its_rounding_left_are_exact(step, count):
    total, rest = product(torch.tensor(count + 0.5, dtype=torch.float64), torch.tensor(step, dtype=torch.float64))
    exact = Fraction(step) * (2 * count + 1) / 2
    assert Fraction(total.item()) + Fraction(rest.item()) == exact and total.item() == float(exact)


def test_a_quotient_beyond_two_to_the_32_is_at_least_that():
    sizes = torch.tensor([1e300, 2.0**33, 2.0**32], dtype=torch.float64)
    assert (nearest(sizes, torch.tensor(2.0**-126, dtype=torch.float64)) >= 2.0**32).all()
