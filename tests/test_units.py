"""Numbers with units, as tables and pages print them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import units
from assay.report import rows


@given(st.floats(1e-12, 9e17), st.integers(2, 6))
def test_a_scaled_number_says_its_value_with_as_many_digits_as_asked(value, digits):
    told = units.scaled(value, "s", digits)
    power = {prefix: power for power, prefix in units.PREFIXES.items()}[told.unit.removesuffix("s")]
    assert float(told.number) * 10.0**power == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))
    assert 1 <= float(told.number) < 1000
    assert len(told.number.replace(".", "")) == max(digits, len(told.number.partition(".")[0]))


@pytest.mark.parametrize(
    ("value", "unit", "says"),
    [
        (1.234e-5, "s", "12.34 µs"),
        (999.96e-9, "s", "1.000 µs"),
        (4.2e12, "B/s", "4.200 TB/s"),
        (251.0, "cycles", "251.0 cycles"),
        (0, "s", "0 s"),
        (None, "s", "–"),
        (float("nan"), "s", "–"),
        (-2.5e-3, "s", "-2.500 ms"),
    ],
)
def test_units(value, unit, says):
    assert units.si(value, unit).replace("\u00a0", " ") == says


@given(st.floats(1e-9, 10), st.floats(0, 0.2), st.floats(0, 0.2))
def test_an_interval_is_told_in_the_unit_of_its_median(value, below, above):
    text = units.between(value, (value * (1 - below), value * (1 + above)), "s").replace("\u00a0", " ")
    number, low, high = (float(n) for n in re.fullmatch(r"([\d.]+) \S*s \(([\d.]+) – ([\d.]+)\)", text).groups())
    assert low / number == pytest.approx(1 - below, rel=2e-3) and high / number == pytest.approx(1 + above, rel=2e-3)


@given(st.dictionaries(st.sampled_from(["n", "rows", "cols", "k"]), st.integers(0, 2**40), min_size=1))
def test_the_axes_of_a_printed_workload_come_back(sizes):
    text = ",".join(f"{k}={v}" for k, v in sizes.items()) + ",eps=1e-05,dtype=bf16,seed=7,offset=1"
    assert rows.axes(text) == sizes
    assert "dtype" not in rows.shape(text)
