"""Kernels that round to a number format give the bits of the format's rule."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.catalog import library
from assay.compress.formats import kernels, parse
from assay.compress.formats.through import through
from assay.models.operators.choice import choose
from assay.models.operators.operator import operator

FORMS = st.sampled_from([f"int:{bits}{shared}" for bits in range(2, 9) for shared in ("", ":channel", ":group=5")])
FLOATS = st.floats(width=32) | st.sampled_from([0.0, -0.0, 2.0**-149, 2.0**-126, 3.4e38, float("nan"), float("-inf")])


@st.composite
def tensors(draw):
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    count = int(torch.tensor(shape).prod())
    values = draw(st.lists(FLOATS, min_size=count, max_size=count))
    return torch.tensor(values, dtype=torch.float32).reshape(shape)


@pytest.fixture(scope="module")
def on_cpu():
    return operator(*choose("int_round/njit", "int_round", "cpu", "int_round"))


def same(one, other):
    return torch.equal(one.view(torch.int32)[~one.isnan()], other.view(torch.int32)[~other.isnan()]) and torch.equal(
        one.isnan(), other.isnan()
    )


@given(text=FORMS, x=tensors())
def test_a_kernel_gives_the_bits_of_the_rule_whatever_shares_a_scale(on_cpu, text, x):
    form = parse(text)
    assert same(kernels.by(on_cpu, form, x), form.quantized(x))


@given(bits=st.integers(2, 8), x=tensors().filter(lambda x: x.ndim == 2))
def test_the_op_and_the_format_are_one_rule(bits, x):
    reference = library.ops()["int_round"].reference
    assert same(reference(x, bits=bits), parse(f"int:{bits}:channel").quantized(x))


@pytest.mark.parametrize("bits", range(2, 9))
def test_a_scale_halfway_between_two_is_rounded_to_the_even_one_by_all(on_cpu, bits):
    halfway = (2 ** (bits - 1) - 1) * torch.arange(257, 512, 2) / 256  # 8 significant bits and a half
    x = torch.stack([halfway, -halfway / 3, halfway / 7], 1)
    form = parse(f"int:{bits}:channel")
    right = form.quantized(x)
    assert same(kernels.by(on_cpu, form, x), right)
    assert same(library.ops()["int_round"].reference(x, bits=bits), right)


@pytest.mark.gpu
@pytest.mark.parametrize("text", ["int:8:channel", "int:4:group=32", "int:5", "int:2:channel"])
@pytest.mark.parametrize("shape", [(384, 1536), (32, 250, 384), (7, 33), (3, 200_000)])
def test_on_a_gpu_a_kernel_rounds_and_the_gradient_passes(text, shape):
    assert kernels._on_gpu() is not None
    x = torch.randn(shape, device="cuda", requires_grad=True)
    form = parse(text)
    got = through(form, x)
    assert same(got.detach().cpu(), form.quantized(x.detach().cpu()))
    got.sum().backward()
    assert bool((x.grad == 1).all())
