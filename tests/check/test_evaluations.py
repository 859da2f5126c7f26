"""Honest evaluations in other orders than PyTorch's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.catalog import library
from assay.check import evaluations, float32, judge, oracle
from assay.check.evaluations import Variation
from assay.op import Axis, Op, Tensor
from assay.workload import Workload


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 700), lanes=st.integers(1, 64), seed=st.integers(0, 1 << 16))
def test_a_running_mean_in_lanes_is_the_mean_and_the_variance(n, lanes, seed):
    x = torch.randn(3, n, generator=torch.Generator().manual_seed(seed))
    mean, squares = float32.welford(x, lanes)
    var, exact = torch.var_mean(x.double(), 1, correction=0)
    assert torch.allclose(mean.double(), exact, atol=1e-5)
    assert torch.allclose(squares.double() / n, var, rtol=1e-4, atol=1e-6)


def test_a_running_mean_that_one_outlier_moves_for_good_is_honest():
    """The sum of such a row is exact in any order. A running mean is not: the later terms bring it back in steps of
    less than half an ulp, which are lost."""
    op = library.ops()["mean_var"]
    workload = Workload.of(op, "rows=2,cols=52224,dtype=fp32,values=constant")
    x = torch.full((2, 52224), -0.625)
    x[:, 2000] = -0.25
    truth = oracle.oracle(workload, {"x": x})
    plain = oracle.baseline(workload, {"x": x})
    chunks = float32.welford(x, 1)
    result = {"out": chunks[0], "var": chunks[1] / 52224}
    assert (chunks[0].double() - x.double().mean(1)).abs().max() > 1e-6
    assert evaluations.evaluate(workload, {"x": x}, Variation("serial"))["out"].equal(plain["out"])
    verdict = judge.judge(result, judge.Measures(truth, plain, judge.Prior()))
    assert verdict.finding is None and any(e.admitted for e in verdict.errors)


def test_a_mean_may_be_multiplied_by_the_reciprocal_of_its_count():
    x = torch.full((2, 7), 0.75)  # 5.25 · (1/7) is not 0.75 in float32
    mode = evaluations._mode()
    for function in (torch.mean, torch.var, torch.std):
        with mode(Variation("serial", division="reciprocal")):
            found = function(x, 1)
        assert torch.allclose(found, function(x, 1), atol=1e-6)
    with mode(Variation("serial", division="reciprocal")):
        assert torch.var(x, 1, correction=0).min() > 0
    with mode(Variation("serial")):
        assert torch.var(x, 1, correction=0).max() == 0


@pytest.mark.parametrize("n", [78, 99, 102, 701, 5003])
@pytest.mark.parametrize("value", [0.3125, 1.0, 1000.0, -0.625])
def test_terms_may_be_scaled_before_one_accumulator_adds_them(value, n):
    """A sum of equal short numbers is exact, that of their n-th parts is not. What is allowed has to cover it."""
    x = torch.full((1, n), value)
    mean = float32.reduce(x / n, "serial").double()
    assert float32.reduce(x, "serial").double() == x.double().sum()
    admitted = (float32.scaled(x).double() - x.double().sum()) / n
    assert (mean - value).abs() <= judge.SLACK["max"] * admitted.abs()


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=2, max_size=200))
def test_the_worst_of_scaled_sums_is_still_a_sum(terms):
    x = torch.tensor([terms])
    bound = 2 * len(terms) * 2.0**-24 * float(x.double().abs().sum())
    assert abs(float(float32.scaled(x)) - float(x.double().sum())) <= bound + 1e-30


def test_only_a_sum_that_is_divided_may_be_of_scaled_terms():
    x = torch.full((2, 701), 0.3125)
    with evaluations._mode()(Variation("serial", means="scaled")):
        total, mean, written_out = x.sum(-1), x.mean(-1), x.sum(-1) / 701
    assert total.equal(torch.full((2,), 701 * 0.3125))
    assert mean.equal(written_out) and not mean.equal(torch.full((2,), 0.3125))


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 700), reciprocal=st.booleans(), seed=st.integers(0, 1 << 16))
def test_a_running_mean_by_terms_is_the_mean_and_the_variance(n, reciprocal, seed):
    x = torch.randn(3, n, generator=torch.Generator().manual_seed(seed))
    mean, squares = float32.by_terms(x, reciprocal)
    var, exact = torch.var_mean(x.double(), 1, correction=0)
    assert torch.allclose(mean.double(), exact, atol=1e-5)
    assert torch.allclose(squares.double() / n, var, rtol=1e-4, atol=1e-6)


def test_a_long_running_mean_by_terms_is_cut_into_lanes():
    x = torch.randn(2, 3 * float32._MERGES + 5)
    mean, squares = float32.by_terms(x, False)
    var, exact = torch.var_mean(x.double(), 1, correction=0)
    assert torch.allclose(mean.double(), exact, atol=1e-5)
    assert torch.allclose(squares.double() / x.shape[1], var, rtol=1e-4)


def test_the_textbooks_running_variance_of_two_near_values_is_honest():
    """Its mean is rounded, and the error does not cancel as it does in two passes."""
    axes, x, out = {"rows": Axis(), "cols": Axis(min=2)}, {"x": Tensor("rows", "cols")}, {"out": Tensor("rows")}
    op = Op("variance", lambda x: x.var(1), axes, x, out, dtypes=("fp32",), source=__file__)
    workload = Workload.of(op, "rows=64,cols=2,dtype=fp32")
    x = 1 + torch.rand(64, 2, generator=torch.Generator().manual_seed(1)) / 50
    _, squares = float32.by_terms(x, False)
    measures = judge.Measures(oracle.oracle(workload, {"x": x}), oracle.baseline(workload, {"x": x}), {})
    assert judge.judge({"out": squares}, measures, orders=False).finding is not None
    assert judge.judge({"out": squares}, measures).finding is None
    at_once = x.square().sum(1) - x.sum(1).square() / 2
    assert judge.judge({"out": at_once}, measures).finding is not None


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_truncation_is_towards_zero_and_less_than_one_ulp(values):
    exact = torch.tensor(values, dtype=torch.float64)
    cut = float32._truncated(exact)
    assert (cut.double().abs() <= exact.abs()).all()
    assert (cut.nextafter(cut.sign() * torch.inf).double().abs() > exact.abs())[cut != 0].all()


@settings(max_examples=30, deadline=None)
@given(m=st.integers(1, 5), n=st.integers(1, 5), k=st.integers(1, 70), seed=st.integers(0, 1 << 16))
def test_products_on_tensor_cores_are_products(m, n, k, seed):
    rng = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(2, *shape, generator=rng).bfloat16().float() for shape in ((m, k), (k, n)))
    exact = a.double() @ b.double()
    bound = (k // float32._TERMS + 1) * 2.0**-23 * (a.abs().double() @ b.abs().double())
    assert ((float32.on_tensor_cores(a, b).double() - exact).abs() <= bound).all()
    least = float32.on_tensor_cores(a.abs(), b.abs()).double()
    assert (least <= a.abs().double() @ b.abs().double()).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_sums_that_tensor_cores_truncate_are_honest_for_16_bits_only(dtype):
    """Of 16384 products that grow, every addition cuts off the same way."""
    op = Op(
        "product",
        lambda a, b: a.float() @ b.float(),
        {"m": Axis(), "k": Axis(), "n": Axis()},
        {"a": Tensor("m", "k"), "b": Tensor("k", "n")},
        {"out": Tensor("m", "n", dtype="fp32")},
        dtypes=("bf16", "fp32"),
        source=__file__,
    )
    workload = Workload.of(op, f"m=4,k=16384,n=4,dtype={dtype}")
    rng = torch.Generator().manual_seed(1)
    inputs = {"a": torch.rand(4, 16384, generator=rng).sort(1)[0], "b": torch.rand(16384, 4, generator=rng)}
    inputs = {name: value.bfloat16().to(workload.dtype.torch) for name, value in inputs.items()}
    out = float32.on_tensor_cores(inputs["a"].float(), inputs["b"].float())
    measures = judge.Measures(oracle.oracle(workload, inputs), oracle.baseline(workload, inputs), {})
    assert (judge.judge({"out": out}, measures).finding is None) == (dtype == "bf16")
    assert judge.judge({"out": out * (1 - 3e-4)}, measures).finding is not None


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 700), how=st.sampled_from(["serial", "reversed", "pairwise", "lanes 32"]), seed=st.integers(0, 99)
)
def test_running_sums_and_products_in_blocks_with_a_carry(n, how, seed):
    x = torch.randn(2, n, 3, generator=torch.Generator().manual_seed(seed))
    with evaluations._mode()(Variation(how)):
        sums, products = x.cumsum(1), (1 + x / 1000).cumprod(1)
    assert torch.allclose(sums.double(), x.double().cumsum(1), atol=1e-4)
    assert torch.allclose(products.double(), (1 + x.double() / 1000).cumprod(1), rtol=1e-4)


def test_a_long_running_sum_is_not_made_of_a_square_matrix():
    """PyTorch's decomposition would take 160 GB here."""
    with evaluations._mode()(Variation("serial")):
        assert torch.ones(200_000).cumsum(0)[-1] == 200_000
