"""References that mix integers with numbers, or ask for float32, are judged against float64 all the same."""

import math
from dataclasses import replace

import pytest
import torch

from assay import Axis, Op, Tensor, inputs
from assay.check import judge, oracle, reference
from assay.op import op as declare
from assay.workload import Workload

AGES = Tensor("n", dtype="int32", range=(0, 400))


@declare(axes={"n": Axis()}, inputs={"x": Tensor("n"), "age": AGES}, outputs={"out": Tensor("n")}, dtypes=("fp32",))
def decayed(x, age):
    return x * torch.exp(-age / 30.0)


@declare(
    axes={"rows": Axis(), "cols": Axis(min=1)},
    inputs={"x": Tensor("rows", "cols"), "mask": Tensor("rows", "cols", dtype="bool")},
    outputs={"out": Tensor("rows")},
    dtypes=("fp32",),
)
def masked_mean(x, mask):
    return (x * mask).sum(-1) / (mask.sum(-1) + 1e-3)


@declare(axes={"n": Axis()}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n")}, dtypes=("fp32", "bf16"))
def softplus_in_float32(x):
    return torch.log1p(torch.exp(x.float() / 7)).to(x.dtype)


RIGHT = {
    "decayed": lambda x, age: x.double() * torch.exp(-age.double() / 30.0),
    "masked_mean": lambda x, mask: (x.double() * mask).sum(-1) / (mask.sum(-1).double() + 1e-3),
    "softplus_in_float32": lambda x: torch.log1p(torch.exp(x.double() / 7)),
}


@pytest.mark.parametrize("op", [decayed, masked_mean, softplus_in_float32], ids=lambda op: op.name)
def test_the_oracle_is_exact(op: Op) -> None:
    workload = Workload.of(op, ",".join(f"{axis}=37" for axis in op.axes) + ",dtype=fp32")
    drawn = inputs.generate(workload)
    exact = oracle.oracle(workload, drawn).exact["out"]
    assert exact.dtype == torch.float64
    assert torch.allclose(exact, RIGHT[op.name](*drawn.values()), rtol=1e-15, atol=0)


def test_a_kernel_in_float32_passes_and_one_in_half_fails() -> None:
    """In float32 throughout, with the exponential of math.exp: other roundings than PyTorch's."""
    workload = Workload.of(decayed, "n=4096,dtype=fp32")
    drawn = inputs.generate(workload)
    measures = judge.Measures(oracle.oracle(workload, drawn), oracle.baseline(workload, drawn), {})
    shares = (-drawn["age"].float() / torch.tensor(30.0)).tolist()
    factors = torch.tensor([math.exp(share) for share in shares], dtype=torch.float32)
    assert judge.judge({"out": drawn["x"] * factors}, measures).finding is None
    assert judge.judge({"out": drawn["x"] * factors.half().float()}, measures).finding is not None


@declare(axes={"n": Axis()}, inputs={"x": Tensor("n", range=(-5, 5))}, outputs={"out": Tensor("n")}, dtypes=("fp64",))
def grown(x):
    return x[torch.arange(x.numel())].exp() + torch.tensor([1, 2])[0]


@pytest.mark.parametrize(("roundings", "found"), [(None, False), (4, True)])
def test_float32_passes_for_fp64_unless_the_op_declares_its_roundings(roundings: float | None, found: bool) -> None:
    """Random rounding knows the errors of float32 alone (docs/ops.md). `arange` and `tensor([1, 2])` stay indices."""
    workload = Workload.of(replace(grown, roundings=roundings), "n=999")
    drawn = inputs.generate(workload)
    measures = judge.Measures(oracle.oracle(workload, drawn), oracle.baseline(workload, drawn), {})
    got = (drawn["x"].float().exp() + 1).double()
    assert (judge.judge({"out": got}, measures).finding is not None) == found


def count_and_mean(x):
    return (x > 0).sum(-1), x.mean(-1)


def test_a_magnitude_may_broadcast_and_leave_out_an_integer_output() -> None:
    op = declare(
        axes={"rows": Axis(), "cols": Axis(min=1)},
        inputs={"x": Tensor("rows", "cols", specials=())},
        outputs={"count": Tensor("rows", dtype="int64"), "mean": Tensor("rows")},
        dtypes=("fp32",),
        magnitude=lambda x: (None, x.abs().max()),
    )(count_and_mean)
    reference.verify_reference(op)
    workload = Workload.of(op, "rows=500,cols=7,dtype=fp32")
    drawn = inputs.generate(workload)
    measures = judge.Measures(oracle.oracle(workload, drawn), oracle.baseline(workload, drawn), {})
    count, mean = count_and_mean(drawn["x"])
    assert judge.judge({"count": count, "mean": mean}, measures).finding is None
    assert judge.judge({"count": count + 1, "mean": mean}, measures).finding is not None
