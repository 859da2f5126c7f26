"""What a kernel keeps between calls: workloads come back to earlier sizes, and the reason names the pair."""

import pytest

import assay
from assay import coverage
from assay.catalog import library
from assay.check.exploring import EFFORTS
from assay.coverage.again import AGAIN
from assay.dtype import dtype

OPS = [op for op in library.ops().values() if not op.random]
FORGETFUL = """
import torch
from assay import kernel

_SEEN = {{}}

@kernel("{op}", backend="torch", variant="keeps")
def keeps({arguments}):
    {body}
"""


def planned(op, number="fp32", **more):
    return coverage.plan(op, dtype(number), EFFORTS["native"], **more).rows


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_plan_comes_back_to_sizes_it_tried_before_largest_first(op):
    rows = planned(op)
    first = [row for row in rows if row.why != AGAIN]
    again = [row for row in rows if row.why == AGAIN]
    assert rows == first + again and 0 < len(again) <= EFFORTS["native"].again
    assert {row.workload.axes for row in again} <= {row.workload.axes for row in first}
    assert [row.cost for row in again] == sorted((row.cost for row in again), reverse=True)
    assert not {str(row.workload) for row in again} & {str(row.workload) for row in first}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_attribute_and_every_optional_input_changes_while_the_sizes_stay(op):
    rows = planned(op)
    known = {(row.workload.axes, row.workload.attributes, row.workload.without) for row in rows if row.why != AGAIN}
    again = [row.workload for row in rows if row.why == AGAIN]
    for place, (name, attribute) in enumerate(op.attributes.items()):
        if len(attribute.choices or ()) > 1:
            assert any(
                one.axes == axes and one.attributes[place] != attributes[place]
                for one in again
                for axes, attributes, _ in known
            ), name
    for name in (n for n, t in op.inputs.items() if t.optional):
        assert any(
            one.axes == axes and (name in one.without) != (name in left) for one in again for axes, _, left in known
        )


def test_sizes_that_are_new_are_called_in_every_other_dtype_first():
    op = library.ops()["softmax"]
    rows = planned(op, dtypes=[dtype(n) for n in op.dtypes])
    before = [row for row in rows if row.before]
    assert {row.before.dtype.name for row in before} == {"bf16", "fp16"}
    others = {row.workload.axes for row in rows if not row.before}
    assert all(row.workload.axes == row.before.axes and row.workload.axes not in others for row in before)


def test_the_reason_names_the_workload_that_left_something_behind_and_the_replay_fails_again(tmp_path):
    body = "torch.add(y, x, alpha=_SEEN.setdefault(x.numel(), alpha), out=out)"
    file = tmp_path / "keeps.py"
    file.write_text(FORGETFUL.format(op="axpy", arguments="x, y, *, alpha, out", body=body))
    (record,) = assay.check(file, dtypes="fp32")
    assert record.evidence["detector"] == "state" and "right in a fresh process, wrong after n=" in record.reason
    assert record.replay.endswith("--dtype fp32")


def test_a_kernel_that_is_wrong_by_itself_is_not_said_to_keep_anything(tmp_path):
    file = tmp_path / "keeps.py"
    file.write_text(FORGETFUL.format(op="axpy", arguments="x, y, *, alpha, out", body="torch.add(y, x, out=out)"))
    (record,) = assay.check(file, dtypes="fp32")
    assert record.evidence["detector"] == "values" and "--workload" in record.replay
