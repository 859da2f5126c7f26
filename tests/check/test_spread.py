"""The tolerance of an op that declares no magnitude is estimated: from few samples, and from many before a kernel is
called wrong. It holds for results of one size and does not hide an error in far smaller ones."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from assay.check import judge, oracle
from assay.inputs import generate
from assay.op import Axis, Op, Tensor
from assay.workload import Workload


def op(reference):
    axes, x, out = {"n": Axis()}, {"x": Tensor("n")}, {"out": Tensor("n")}
    return Op(reference.__name__, reference, axes, x, out, dtypes=("fp32",), source=__file__)


def softplus(x):
    return F.softplus(x)


def expm1(x):
    return torch.expm1(x)


def product(x):
    return torch.cumsum(x, 0)


def judged(reference, x, evaluate, change=lambda truth: truth, **options):
    workload = Workload.of(op(reference), f"n={x.numel()},dtype=fp32")
    truth = change(oracle.oracle(workload, {"x": x}))
    measures = judge.Measures(truth, oracle.baseline(workload, {"x": x}), {})
    return judge.judge({"out": evaluate(x)}, measures, **options)


TAILS = {
    "softplus": (softplus, lambda x: torch.log(1 + x.exp()), lambda x: torch.log1p(x.exp()), -12.0),
    "expm1": (expm1, lambda x: x.exp() - 1, lambda x: 2 * (x / 2).sinh() * (x / 2).exp(), 1e-4),
}


@pytest.mark.parametrize("count", [1, 7, 63, 300])
@pytest.mark.parametrize("name", TAILS)
def test_digits_lost_in_a_few_small_results_are_found_beside_many_large_ones(name, count):
    reference, naive, careful, tail = TAILS[name]
    x = torch.cat([torch.full((count,), tail), torch.linspace(0.5, 3, 2000)])
    wrong = judged(reference, x, naive)
    assert wrong.finding is not None and wrong.finding.detector == "values"
    assert judged(reference, x, careful).finding is None


def test_an_estimate_that_is_far_too_small_is_taken_again_before_a_kernel_is_called_wrong():
    x = generate(Workload.of(op(product), "n=3000,dtype=fp32"))["x"]

    def serial(x):
        return torch.from_numpy(x.numpy().cumsum(dtype="float32"))

    def unlucky(truth):
        estimate = replace(truth, others=list, spread={n: v / 100 for n, v in truth.spread.items()})
        return replace(estimate, refined=lambda: replace(truth, others=list))

    hopeful = judged(product, x, serial, unlucky, orders=False)
    assert hopeful.finding is not None
    assert judged(product, x, serial, unlucky).finding is None
    wrong = judged(product, x, lambda x: serial(x) * (1 + 1e-4), unlucky)
    assert wrong.finding is not None


def test_few_samples_never_estimate_a_deviation_far_below_the_usual_ones():
    exact = torch.cat([torch.linspace(1, 2, 1000), torch.full((3,), 1e-6), torch.tensor([torch.inf])]).double()
    spread = torch.cat([torch.full((1000,), 1e-3), torch.full((3,), 1e-9), torch.tensor([0.0])]).double()
    spread[5] = 0.0
    smooth = oracle._smooth({"out": spread}, {"out": exact})["out"]
    assert float(smooth[5]) == pytest.approx(5e-4), "half of what is usual among results of its size"
    assert torch.equal(smooth[1000:1003], spread[1000:1003]), "results of another size do not count"
    assert torch.equal(smooth[6:1000], spread[6:1000])


def test_the_second_estimate_has_room_for_another_formula():
    workload = Workload.of(op(product), "n=4000,dtype=fp32")
    first = oracle.oracle(workload, generate(workload))
    again = first.refined()
    ratio = (again.spread["out"] / first.spread["out"] / oracle._OTHER_FORMULA).log2()[100:]
    assert float(ratio.min()) > -2 and float(ratio.max()) < 2
    assert first.refined() is again, "it is computed once"


def ema(x):
    rows, y = [], None
    for row in x.view(-1, 100):
        y = row if y is None else 0.5 * row + 0.5 * y
        rows.append(y)
    return torch.cat(rows) if rows else x.clone()


@pytest.mark.parametrize("seed", range(12))
def test_another_formula_may_round_where_the_reference_halves_without_rounding(seed):
    x = torch.randn(400, generator=torch.Generator().manual_seed(seed))

    def moved(x):
        rows, y = [], torch.zeros(100)
        for i, row in enumerate(x.view(-1, 100)):
            y = y + 0.5 * (row - y) if i else row
            rows.append(y)
        return torch.cat(rows)

    assert judged(ema, x, moved).finding is None
    assert judged(ema, x, lambda x: moved(x) + 4e-7).finding is not None


@pytest.mark.parametrize(
    ("view", "shape"),
    [(lambda x: x.mT, ("n", "m")), (lambda x: x[:, -1:], ("m", 1)), (lambda x: x[:, 0], ("m",))],
    ids=["transposed", "last column", "first column"],
)
def test_a_reference_may_return_part_of_a_tensor_or_a_transposed_one(view, shape):
    axes, x, out = {"m": Axis(), "n": Axis()}, {"x": Tensor("m", "n")}, {"out": Tensor(*shape)}
    turned = Op("turned", lambda x: view((x * x + 1).sin()), axes, x, out, dtypes=("fp32",), source=__file__)
    workload = Workload.of(turned, "m=300,n=7,dtype=fp32")
    x = generate(workload)["x"]
    measures = judge.Measures(oracle.oracle(workload, {"x": x}), oracle.baseline(workload, {"x": x}), {})
    right = view((x * x + 1).sin()).contiguous()
    assert judge.judge({"out": right}, measures).finding is None
    assert judge.judge({"out": right + 1e-4}, measures).finding is not None


def test_values_below_the_smallest_normal_number_may_vanish_also_under_a_square_root():
    axes, given, out = {"n": Axis()}, {"m": Tensor("n"), "v": Tensor("n", range=(0, 100))}, {"out": Tensor("n")}
    step = Op("step", lambda m, v: m / (v.sqrt() + 1e-8), axes, given, out, dtypes=("fp32",), source=__file__)
    workload = Workload.of(step, "n=64,dtype=fp32,values=subnormal")
    inputs = generate(workload)
    truth = oracle.oracle(workload, inputs)
    assert not truth.flushed["out"].isnan().any() and (truth.flushed["out"] > 0).any()
    flushed = torch.zeros(64)
    measures = judge.Measures(truth, oracle.baseline(workload, inputs), {})
    assert judge.judge({"out": flushed}, measures).finding is None
    assert judge.judge({"out": flushed + 1e-20}, measures).finding is not None
