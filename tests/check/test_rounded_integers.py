"""Integers that follow from numbers which are rounded: either neighbour is right where a rounding decides between them,
and nowhere else."""

import pytest
import torch

from assay import Axis, Tensor, inputs
from assay.check import judge, oracle
from assay.op import op as declare
from assay.workload import Workload

CODE = {"out": Tensor("rows", "cols", dtype="int8")}
X = {"x": Tensor("rows", "cols")}
AXES = {"rows": Axis(), "cols": Axis(min=1)}


@declare(axes=AXES, inputs=X, outputs=CODE, dtypes=("fp32",))
def quantised(x):
    scale = x.float().abs().amax(-1, keepdim=True) / 127
    return torch.round(x / torch.where(scale == 0, 1.0, scale)).clamp(-127, 127).to(torch.int8)


@declare(axes=AXES, inputs=X, outputs=CODE, dtypes=("fp32",), roundings=0)
def quantised_exactly(x):
    return quantised.reference(x)


@declare(axes=AXES, inputs=X, outputs={"out": Tensor("rows", "cols", dtype="bool")}, dtypes=("fp32",))
def positive(x):
    return x > 0


@declare(
    axes={"n": Axis()},
    inputs={"x": Tensor("n", range=(0, 2**62))},
    outputs={"out": Tensor("n")},
    dtypes=("int64",),
)
def root(x):
    r = x.double().sqrt().long()
    r = r - (r * r > x).long()
    return r + ((r + 1) * (r + 1) <= x).long()


@declare(
    axes={"rows": Axis(), "steps": Axis(min=1)}, inputs={"x": Tensor("rows", "steps")}, outputs={"out": Tensor("rows")}
)
def running_mean(x):
    mean = x[:, 0]
    for step in range(1, x.shape[1]):
        mean = mean + 0.1 * (x[:, step] - mean)
    return mean


def verdict(op, workload, out):
    drawn = inputs.generate(workload)
    truth = oracle.oracle(workload, drawn)
    measures = judge.Measures(truth, oracle.baseline(workload, drawn), {})
    return judge.judge({"out": out(drawn["x"], truth)}, measures).finding


@pytest.mark.parametrize("values", ["normal", "cancel", "halfway", "subnormal", "wide"])
def test_the_reference_itself_in_float32_passes(values):
    workload = Workload.of(quantised, f"rows=500,cols=33,dtype=fp32,values={values}")
    assert verdict(quantised, workload, lambda x, truth: quantised.reference(x)) is None


@pytest.mark.slow
def test_another_formula_passes_and_a_wrong_one_does_not():
    workload = Workload.of(quantised, "rows=20000,cols=64,dtype=fp32")

    def by_reciprocal(x, truth):
        return torch.round(x * (127 / x.abs().amax(-1, keepdim=True))).clamp(-127, 127).to(torch.int8)

    def cut_off(x, truth):
        return (x / (x.abs().amax(-1, keepdim=True) / 127)).to(torch.int8)

    def one_off(x, truth):
        right = truth.exact["out"].clone()
        right[7, 7] += 1 if right[7, 7] < 0 else -1
        return right

    assert verdict(quantised, workload, by_reciprocal) is None
    assert verdict(quantised, workload, cut_off) is not None
    assert verdict(quantised, workload, one_off) is not None
    drawn = inputs.generate(workload)
    assert not torch.equal(by_reciprocal(drawn["x"], None), oracle.oracle(workload, drawn).exact["out"])


def test_an_op_that_promises_bits_or_moves_data_has_one_right_answer():
    workload = Workload.of(quantised_exactly, "rows=2000,cols=64,dtype=fp32")
    assert not oracle.oracle(workload, inputs.generate(workload)).between()
    workload = Workload.of(positive, "rows=20,cols=64,dtype=fp32")
    assert not oracle.oracle(workload, inputs.generate(workload)).between()
    assert verdict(positive, workload, lambda x, truth: x >= 0.01) is not None


def test_what_follows_from_integers_alone_is_exact():
    workload = Workload.of(root, "n=500,dtype=int64,values=ends")
    assert verdict(root, workload, lambda x, truth: root.reference(x)) is None
    assert verdict(root, workload, lambda x, truth: x.double().sqrt().long()) is not None


def test_a_formula_that_only_moves_values_of_short_rows_may_round_there_too():
    workload = Workload.of(running_mean, "rows=300,steps=1,dtype=fp32")
    assert verdict(running_mean, workload, lambda x, truth: 0.1 * x[:, 0] + 0.9 * x[:, 0]) is None
    assert verdict(running_mean, workload, lambda x, truth: x[:, 0] * (1 + 2**-20)) is not None
