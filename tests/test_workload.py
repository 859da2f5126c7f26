"""A workload's printed form rebuilds it exactly, and its inputs are the same bits every time."""

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import coverage, inputs
from assay.catalog import library
from assay.check.shrink import shrink
from assay.coverage.constants import Constants
from assay.dtype import dtype
from assay.errors import UsageError
from assay.op import Attribute, Axis, Op, Tensor, op
from assay.workload import Workload

OPS = sorted(library.ops())
EFFORT = coverage.Effort(24, 1 << 10, 1 << 13, 1 << 13, 6)


@cache
def planned(op, name, seed):
    return coverage.plan(library.ops()[op], dtype(name), EFFORT, seed, Constants((48,), (3.5,))).rows


@st.composite
def workloads(draw, op, name):
    """One of the workloads that check would plan, by any seed."""
    return draw(st.sampled_from(planned(op.name, name, draw(st.integers(0, 1))))).workload


@pytest.mark.slow
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_printed_form_round_trips(data):
    op = library.ops()[data.draw(st.sampled_from(OPS))]
    workload = data.draw(workloads(op, data.draw(st.sampled_from(op.dtypes))))
    assert Workload.of(op, str(workload)) == workload


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_inputs_are_reproducible_and_fresh_values_differ(data):
    import torch

    op = library.ops()[data.draw(st.sampled_from(OPS))]
    workload = data.draw(workloads(op, data.draw(st.sampled_from(op.dtypes))))
    first, again, fresh = (inputs.generate(workload, v) for v in (0, 0, 1))
    for name, value in first.items():
        assert tuple(value.shape) == workload.shape(op.inputs[name])
        assert torch.equal(value.nan_to_num(0.5), again[name].nan_to_num(0.5))
    big = max(first, key=lambda n: first[n].numel())
    distinct = first[big].nan_to_num(0.5).unique().numel()  # few by design, or where 16 bits cannot tell 1000 from 1001
    if first[big].numel() > 8 and distinct > first[big].numel() / 2:
        assert not torch.equal(first[big].nan_to_num(0.5), fresh[big].nan_to_num(0.5))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("n=x", "invalid literal"),
        ("m=3", "has no 'm'"),
        ("n", "not name=value"),
        ("n=-1", "outside 0"),
        ("dtype=fp8", "no dtype"),
        ("values=odd", "no such kind"),
        ("strided=x", "must be contiguous"),
        ("without=x", "not optional"),
    ],
)
def test_a_malformed_workload_says_what_is_wrong_and_how_to_write_it(text, complaint):
    with pytest.raises(UsageError, match=complaint) as caught:
        Workload.of(library.find_op("gelu"), text)
    assert caught.value.fix


def test_a_failing_workload_is_made_as_small_as_it_can_be():
    op = library.find_op("row_scale")
    start = Workload.of(op, "rows=977,cols=1021,dtype=bf16,seed=77,values=wide,offset=3")
    found = shrink(start, lambda w: w.sizes.rows >= 13 and w.sizes.cols >= 129 and w.offset > 0)
    assert str(found) == "rows=13,cols=129,dtype=bf16,offset=3"


def test_a_function_under_op_can_still_be_called():
    @op(
        axes={"n": Axis()},
        inputs={"x": Tensor("n")},
        outputs={"out": Tensor("n")},
        attributes={"by": Attribute(2, (2, 3))},
    )
    def scaled(x, *, by):
        """x times a number."""
        return x * by

    x = torch.tensor([1.0, -4.0])
    assert scaled(x, by=3).tolist() == [3, -12] and scaled.name == "scaled"


def test_an_ops_functions_know_its_derived_sizes():
    op = Op(
        "strided",
        lambda x, step: x[::step],
        {"n": Axis(min=1)},
        {"x": Tensor("n")},
        {"out": Tensor("kept")},
        {"step": Attribute(2, (2, 3))},
        derived={"kept": lambda w: -(-w.n // w.step), "twice": lambda w: 2 * w.kept, "never": lambda w: w.n // 0},
        operations=lambda w: w.twice,
        require=lambda w: w.kept != 4,
        source=__file__,
    )
    workload = Workload.of(op, "n=9,dtype=fp32")
    assert workload.operations == 10 and workload.length("kept") == 5 and workload.allowed
    assert not workload.replace(axes=(("n", 7),)).allowed
    with pytest.raises(ZeroDivisionError):
        workload.length("never")
