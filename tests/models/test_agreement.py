"""Outputs against float64: another order of operations agrees, a mistake does not."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.models.studies.agreement import agreement, errors, leaves

# Outputs against float64


def test_another_order_of_additions_agrees_and_a_lost_term_does_not():
    torch.manual_seed(0)
    x, w = torch.randn(64, 256), torch.randn(256, 32)
    exact, eager = [x.double() @ w.double()], [x @ w]
    reordered = [x.flip(1) @ w.flip(0)]
    lost = [x[:, 1:] @ w[1:]]
    assert agreement(exact, eager, reordered).share <= 1
    assert agreement(exact, eager, lost).share > 100
    assert agreement(exact, eager, [torch.zeros_like(eager[0])]).share > 1000


def test_one_wrong_element_and_one_nan_among_many_are_seen():
    torch.manual_seed(0)
    exact = [torch.randn(512, 64, dtype=torch.float64)]
    eager = [exact[0].float()]
    for bad in (1.001, math.nan):
        wrong = eager[0].clone()
        wrong[7, 3] *= bad
        assert agreement(exact, eager, [wrong]).share > 1


def test_whole_numbers_must_be_the_same():
    labels = [torch.arange(10)]
    assert agreement(labels, labels, [torch.arange(10)]).share == 0
    assert agreement(labels, labels, [torch.arange(10).flip(0)]).share > 1


@given(st.integers(-60, 60), st.integers(1, 5), st.integers(1, 5))
def test_errors_do_not_depend_on_the_scale_of_the_outputs(power, rows, columns):
    torch.manual_seed(rows * 10 + columns)
    exact = torch.randn(rows, columns, dtype=torch.float64)
    got = exact.float()
    scale = 2.0**power
    assert errors(got * scale, exact * scale).rms == pytest.approx(errors(got, exact).rms)


def test_tensors_are_found_in_whatever_a_model_returns():
    a, b = torch.ones(2), torch.zeros(3)
    assert [t.tolist() for t in leaves({"x": a, "more": (b, None, "text")})] == [a.tolist(), b.tolist()]
    with pytest.raises(Exception, match="no tensor"):
        leaves("text")
