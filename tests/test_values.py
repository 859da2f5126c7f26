"""The kinds of values that inputs are drawn from."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import values
from assay.catalog.library import find_op
from assay.dtype import dtype
from assay.inputs import generate
from assay.op import Axis, Op, Tensor
from assay.workload import Workload

FORMATS = ("fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2")
RANGES = ((-100.0, 100.0), (0.0, 1.0), (-8.0, -1.0), (-1e4, 1e4))


def drawn(kind, name, bounds, seed, shape=(16, 256)):
    number = dtype(name)
    low, high = (max(b, -number.max) if b < 0 else min(b, number.max) for b in bounds)
    return values.floats(kind, shape, values.Range(low, high, number), torch.Generator().manual_seed(seed)), low, high


@given(
    kind=st.sampled_from(sorted(values._FLOATS)),
    name=st.sampled_from(FORMATS),
    bounds=st.sampled_from(RANGES),
    seed=st.integers(0, 1 << 20),
)
@settings(max_examples=150, deadline=None)
def test_every_kind_stays_within_its_range(kind, name, bounds, seed):
    found, low, high = drawn(kind, name, bounds, seed)
    assert found.isfinite().all() and low <= found.min() and found.max() <= high


@given(
    st.sampled_from(["floats", "integers", "indices"]),
    st.integers(3, 5000),
    st.integers(0, 1 << 20),
    st.integers(2, 99),
)
@settings(max_examples=60, deadline=None)
def test_all_elements_but_an_inner_one_are_alike(draw, length, seed, size):
    """A look at the first and the last element must not tell that a tensor is one of zeros or ones."""
    rng = torch.Generator().manual_seed(seed)
    if draw == "indices":
        found = values.indices("alike", (length,), size, rng)
    else:
        found = getattr(values, draw)("alike", (length,), values.Range(-9, 9, dtype("fp32")), rng)
    others = float(found[0])
    assert others in (0, 1) and found[-1] == others and (found != others).sum() <= 1


@pytest.mark.parametrize("name", FORMATS)
def test_values_far_from_zero_still_differ_in_a_narrow_format(name):
    found, *_ = drawn("offset", name, (-1e4, 1e4), 3)
    distinct = dtype(name).rounded(found.double()).unique().numel()
    assert distinct >= 20, "so near to each other that most of them are equal"


@pytest.mark.parametrize("number", ["fp32", "bf16"])
def test_a_huge_tensor_repeats_values_of_its_own_format(monkeypatch, number):
    """A prime number of them: an index that wraps around at a power of two meets other values."""
    monkeypatch.setattr(values, "BLOCK", 97)
    many = generate(Workload.of(find_op("softmax"), f"rows=31,cols=50,dtype={number}"))["x"].view(-1)
    assert many.dtype == dtype(number).torch and len(many) == 31 * 50
    assert torch.equal(many[97:], many[:-97]) and not torch.equal(many[64:128], many[:64])


def test_the_length_of_what_is_repeated_is_a_prime():
    assert all(values.BLOCK % n for n in range(2, math.isqrt(values.BLOCK) + 1)) and 2**23 < values.BLOCK < 2**24


@pytest.mark.parametrize("kind", ["normal", "wide", "ends", "sorted", "offset"])
def test_long_integers_have_all_their_digits(kind):
    within = values.Range(0, 2**62, dtype("int64"))
    found = values.integers(kind, (64, 64), within, torch.Generator().manual_seed(1))
    assert found.dtype == torch.int64 and int(found.min()) >= 0 and int(found.max()) <= 2**62
    assert (found % 2 == 1).any(), "a float64 has no odd number of that size"
    if kind == "ends":
        assert set(found.unique().tolist()) == {0, 1, 2**62 - 1, 2**62}


@pytest.mark.parametrize(("kind", "largest"), [("normal", 10), ("wide", 10), ("special", 10), ("small", 0.01)])
def test_a_function_that_makes_values_fit_gets_ordinary_ones_or_small_ones(kind, largest):
    ordered = Tensor("n", 2, range=(-1000, 1000), specials=(math.nan,), form=lambda x: x.sort(-1).values)
    of_pairs = Op("width", lambda x: x[:, 1] - x[:, 0], {"n": Axis()}, {"x": ordered}, {"out": Tensor("n")})
    x = generate(Workload.of(of_pairs, f"n=500,dtype=fp32,values={kind}"))["x"]
    assert (x[:, 1] >= x[:, 0]).all() and x.isfinite().all() and 0 < x.abs().max() < largest


def test_a_function_that_makes_integers_fit_gets_whole_numbers_and_its_result_is_cut_off_towards_zero():
    seen = []
    halves = Tensor("n", dtype="int32", range=(-9, 9), form=lambda x: (seen.append(x), x / 2)[1])
    of_halves = Op("halves", lambda x: x, {"n": Axis()}, {"x": halves}, {"out": Tensor("n")})
    x = generate(Workload.of(of_halves, "n=500,dtype=fp32,values=wide"))["x"]
    assert seen[0].dtype == torch.float64 and torch.equal(seen[0], seen[0].round())
    assert torch.equal(x, (seen[0] / 2).trunc().int()) and (seen[0] % 2).any()


def test_a_function_that_makes_values_fit_gets_values_near_a_constant():
    unit = Tensor("n", 4, form=lambda x: x.abs())
    of_rows = Op("norm", lambda x: x.norm(dim=1), {"n": Axis()}, {"x": unit}, {"out": Tensor("n")})
    x = generate(Workload.of(of_rows, "n=500,dtype=fp32,values=near:1e-09"))["x"]
    assert (x >= 0).all() and (x.norm(dim=1) < 1e-6).sum() > 100


def test_what_follows_from_an_optional_input_gets_none_where_that_is_left_out():
    """A result in an integer format is cut off towards zero, and one given input may follow from another."""
    made = Op(
        "made",
        lambda x, b, y, z: x,
        {"n": Axis()},
        {
            "x": Tensor("n"),
            "b": Tensor("n", optional=True),
            "y": Tensor("n", dtype="int32", given=lambda x, b: x * 10 if b is None else x * 0 - 0.9),
            "z": Tensor("n", given=lambda y: y + 1),
        },
        {"out": Tensor("n")},
    )
    workload = Workload(made, (("n", 9),), dtype("fp32"))
    left_out = generate(workload.replace(without=("b",)))
    assert torch.equal(left_out["y"], (left_out["x"].double() * 10).trunc().int())
    assert torch.equal(left_out["z"], left_out["y"].float() + 1)
    assert not generate(workload)["y"].any()
