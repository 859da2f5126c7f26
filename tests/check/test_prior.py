"""PyTorch's own errors on a sample, against which a kernel's are compared, can be measured in every format."""

import pytest
import torch

from assay import Axis, Tensor, op
from assay.check.judge import calibrate
from assay.check.oracle import oracle
from assay.dtype import dtype
from assay.workload import Workload


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"])
def test_errors_are_measured_in_every_format_with_a_fraction(name):
    @op(axes={"n": Axis(typical=64)}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n", dtype=name)})
    def scaled(x):
        return x / x.abs().amax()

    x = torch.linspace(-7, 5, 400)
    right = scaled.reference(x)
    right[-1] = torch.nan
    result = right.to(dtype(name).torch)
    prior = {}
    calibrate(prior, oracle(Workload.of(scaled, "n=400,dtype=fp32"), {"x": x}), {"out": result})
    assert prior["out"] and all(figure["max"] < 2 for figure in prior["out"].values())
