"""The gradient of a number format passes straight through, but not where a value saturated."""

import math

import pytest
import torch

from assay.compress.formats import parse
from assay.compress.formats.through import through

NAMES = [
    "fixed:8:4",
    "minifloat:e4m3",
    "log:4",
    "binary",
    "int:4:group=2",
    "bfp:8:block=16",
    "binary:residual",
    "mxint8",
]


def gradient(name, values):
    x = torch.tensor(values, requires_grad=True)
    weights = torch.arange(1.0, len(values) + 1)
    (through(parse(name), x) * weights).sum().backward()
    return x.grad.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_forward_gives_the_quantised_values(name):
    x = torch.randn(5, 20, generator=torch.Generator().manual_seed(3), requires_grad=True)
    assert torch.equal(through(parse(name), x), parse(name).quantized(x))
    assert not parse(name).quantized(x).requires_grad


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("fixed:8:4", -8.0, 7.9375),
        ("minifloat:e4m3", -480.0, 480.0),
        ("minifloat:e4m3:nan", -448.0, 448.0),
        ("log:4:e=2", -4.0, 4.0),
        ("binary", -1.0, 1.0),
    ],
)
def test_the_gradient_is_unchanged_within_the_limits_and_zero_beyond(name, low, high):
    beyond = math.nextafter(high, math.inf) * 1.001
    values = [low, low * 1.001, 0.0, high, beyond, math.nan, math.inf, high / 3]
    assert gradient(name, values) == [1.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 8.0]


@pytest.mark.parametrize("name", ["int:4", "bfp:4:block=2", "block-log:3:block=4", "binary:scaled", "mxint8"])
def test_nothing_saturates_where_the_scale_follows_the_data(name):
    assert gradient(name, [1e30, -3.0, 0.0, 1e-30]) == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("name", ["fixed:12:6", "minifloat:e5m10:ieee", "bfp:12:block=8"])
def test_it_is_the_slope_of_the_format_over_many_steps(name):
    """Rounding has no derivative; across many steps its slope is 1, and 0 where it saturates."""
    form = parse(name)
    x = torch.linspace(-20, 20, 8)
    slope = (form.quantized(x + 4) - form.quantized(x - 4)) / 8
    assert torch.allclose(slope, torch.tensor(gradient(name, x.tolist())) / torch.arange(1.0, 9.0), atol=0.02)
    low, high = parse("fixed:4:2").limits
    assert parse("fixed:4:2").quantized(torch.tensor([high + 1, high + 9, low - 1])).tolist() == [high, high, low]


def test_a_linear_layer_learns_through_it():
    torch.manual_seed(0)
    weight = torch.zeros(4, 8, requires_grad=True)
    x, goal = torch.randn(256, 8), torch.randint(-8, 8, (4, 8)) / 8
    for _ in range(200):
        loss = (x @ through(parse("fixed:5:3"), weight).t() - x @ goal.t()).square().mean()
        weight.grad = None
        loss.backward()
        with torch.no_grad():
            weight -= 0.3 * weight.grad
    assert torch.equal(parse("fixed:5:3").quantized(weight), goal)
