"""A failure that a declared magnitude would explain says so; others do not."""

import pytest

import assay
from assay.check.undeclared import Undeclared, undeclared

SQUARES = """
import torch
from assay import Axis, Tensor, kernel, op

RANGE = (-100, 100)

@op(axes={"n": Axis(typical=1024)}, inputs={"x": Tensor("n", range=RANGE), "y": Tensor("n", range=RANGE)},
    outputs={"out": Tensor("n")}, dtypes=("fp32",)%s)
def squares(x, y):
    return (x - y) * (x + y)

@kernel("squares", backend="torch")
def expanded(x, y, *, out):
    torch.sub(x * x, y * y, out=out)

@kernel("squares", backend="torch")
def wrong(x, y, *, out):
    torch.add(x * x, y * y, out=out)
"""
HINT = "If squares allows that, declare"


def reasons(file):
    return {r.kernel.partition(":")[2]: (str(r.status), r.reason) for r in assay.check(file, workloads=20)}


@pytest.mark.slow
def test_a_kernel_whose_terms_cancel_is_told_what_may_be_missing_in_the_op(write):
    bare = reasons(write("bare.py", SQUARES % ""))
    assert bare["expanded"][0] == "fail" and HINT in bare["expanded"][1] and "docs/ops.md" in bare["expanded"][1]
    assert bare["wrong"][0] == "fail" and HINT not in bare["wrong"][1], "no rounding explains that"
    declared = reasons(write("declared.py", SQUARES % ", magnitude=lambda x, y: x * x + y * y, roundings=2"))
    assert declared["expanded"][0] == "pass" and declared["wrong"][0] == "fail"


def test_only_a_small_error_beside_a_small_result_is_explained_by_rounding():
    op = Undeclared("squares", 1e4)
    assert op.hint(1e-3, 1.1e-3) and op.hint(0.0, 1e-3)
    assert not op.hint(1.0, 2.0), "the error is larger than roundings"
    assert not op.hint(9000.001, 9000.0), "the result is not small"


def test_only_a_users_op_without_a_magnitude_lacks_one(write):
    import torch

    from assay.catalog import library
    from assay.catalog.select import select

    drawn = {"x": torch.tensor([3.0, float("inf")]), "y": torch.tensor([-5.0, 1.0])}
    (_, bare), *_ = select([write("bare.py", SQUARES % "")])
    (_, declared), *_ = select([write("declared.py", SQUARES % ", magnitude=lambda x, y: x * x + y * y")])
    assert undeclared(bare, drawn) == Undeclared("squares", 15.0)
    assert undeclared(declared, drawn) is None and undeclared(library.ops()["relu"], drawn) is None
    assert undeclared(bare, {}) is None
