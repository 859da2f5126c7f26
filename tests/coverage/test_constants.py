"""The numbers of a kernel's own code give sizes and values; those of the op's declaration beside it do not."""

from assay.catalog.select import select
from assay.check.exploring import EFFORTS
from assay.coverage import constants, plan
from assay.dtype import dtype

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
