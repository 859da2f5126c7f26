"""A letter in a format's name stands for a width, or for what fits a tensor best."""

import pytest
import torch

from assay.compress import templates
from assay.compress.formats import parse
from assay.errors import UsageError


def test_a_fraction_is_chosen_for_each_tensor():
    small, large = torch.linspace(-0.1, 0.1, 101), torch.linspace(-50, 50, 101)
    assert templates.fitted("fixed:8:F", small).name == "fixed:8:10"
    assert templates.fitted("fixed:8:F", large).name == "fixed:8:1"


def test_it_has_the_least_error_of_all_fractions():
    """With few bits it pays to let a few large weights saturate."""
    x = torch.randn(2000, generator=torch.Generator().manual_seed(0)) * 0.1
    chosen = templates.fitted("fixed:4:F", x)
    errors = {f: float((parse(f"fixed:4:{f}").quantized(x) - x).square().sum()) for f in range(20)}
    assert chosen.name == f"fixed:4:{min(errors, key=errors.get)}"


def test_the_largest_exponent_of_a_logarithmic_format_follows_the_tensor():
    assert templates.fitted("log:4:e=T", torch.tensor([0.11, -0.25])).name == "log:4:e=-2"


def test_zeros_and_empty_tensors_have_a_format_too():
    for x in (torch.zeros(3), torch.empty(0)):
        assert templates.fitted("fixed:8:F", x).quantized(x).tolist() == x.tolist()


@pytest.mark.parametrize(("short", "full"), templates.SHORT.items())
def test_a_word_alone_stands_for_a_template(short, full):
    assert templates.written_out(short) == full
    assert templates.fitted(templates.of_width(full, 6), torch.randn(4, 64)).bits((4, 64)) >= 6 * 256


def test_a_fraction_that_is_given_is_the_fraction():
    assert templates.of_width(templates.written_out("fixed", 3), 8) == "fixed:8:3"


@pytest.mark.parametrize(
    ("template", "width", "fraction"),
    [("fixed", None, None), ("int:W:channel", 8, 3), ("fixd:W:F", 8, None), ("int:W:group=0", 8, None)],
)
def test_what_is_no_format_is_refused_before_anything_is_trained(template, width, fraction):
    with pytest.raises(UsageError):
        templates.of_width(templates.written_out(template, fraction), width)


def test_items_of_a_batch_have_scales_of_their_own():
    assert templates.of_inputs("int:8") == "int:8:channel"
    assert templates.of_inputs("bfp:8:block=32") == "bfp:8:block=32"
