"""The numbers of a kernel's own code give sizes and values; those of the op's declaration beside it do not."""

import pytest
import torch

from assay import Axis, Tensor, op
from assay.catalog.select import select
from assay.check.exploring import EFFORTS
from assay.coverage import constants, plan
from assay.dtype import dtype
from assay.inputs import generate
from assay.workload import Workload

FILE = """\
import torch
from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(typical=24), "cols": Axis(min=1, typical=1000)},
    inputs={"x": Tensor("rows", "cols", range=(-250, 250))},
    outputs={"out": Tensor("rows", "cols")},
)
def carried(x):
    return torch.cumsum(x, -1) % 77


@kernel("carried", backend="torch")
def kernel_of_mine(x, *, out, BLOCK=1024, eps=1e-12):
    out.copy_(x.cumsum(-1) / (x.norm() + 1e-30))
"""


def test_numbers_of_the_contract_are_none_of_the_kernel(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    (kernel, op), *_ = select([tmp_path / "mine.py"])
    known = constants.of(kernel)
    assert known.sizes == (1024,)
    assert known.values == (1e-12,)
    rows = plan(op, dtype("fp32"), EFFORTS["native"], constants=known).rows
    lengths = {dict(row.workload.axes)["cols"] for row in rows}
    assert {1024, 1025, 3073} <= lengths, "one block, a bit more, and a loop that goes around three times"
    assert "near:1e-12" in {row.workload.values for row in rows}


@op(
    axes={"rows": Axis(typical=24), "cols": Axis(min=1, typical=1000)},
    inputs={"x": Tensor("rows", "cols")},
    outputs={"out": Tensor("rows", "cols")},
)
def unit(x):
    """Rows of length 1; a threshold in an inner function."""

    def kept(y):
        return y * (y.abs() > 0.03125)

    return kept(x) / x.norm(dim=1, keepdim=True).clamp_min(1e-12)


@pytest.mark.parametrize(
    "own, together",
    [((1e-8, 0.03125), (1e-8, 1e-12, 0.03125)), ((), (0.03125, 1e-12)), ((1e-12, 3.5, 0.03125), (3.5, 1e-12, 0.03125))],
)
def test_values_that_only_the_kernel_or_only_the_reference_has_come_first(own, together):
    values = constants.Constants(values=own).beside(unit).values
    apart = set(own) ^ {1e-12, 0.03125}
    assert set(values) == set(together) and set(values[: len(apart)]) == apart


def test_an_eps_that_is_too_large_makes_rows_near_it_wrong():
    """Unit rows with 1e-8 in place of 1e-12: only rows whose norm is below it show the difference."""
    workload = Workload.of(unit, "rows=24,cols=77,dtype=fp32,values=near:1e-08")
    x = generate(workload)["x"]
    wrong = x / x.norm(dim=1, keepdim=True).clamp_min(1e-8)
    right = x / x.norm(dim=1, keepdim=True).clamp_min(1e-12)
    assert not torch.allclose(wrong, right, rtol=1e-3)
