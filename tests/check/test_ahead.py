"""The right answers for the next workload are computed while the kernel runs; the verdicts are the same."""

from functools import partial

import pytest
import torch

from assay.backends import here
from assay.catalog.select import select
from assay.check.ahead import Ahead
from assay.check.case import Case
from assay.check.outcome import Conditions
from assay.check.plain import PlainTorch
from assay.worker import Pool
from assay.worker.request import Call
from assay.workload import Workload


@pytest.fixture
def setting():
    ((kernel, op),) = select(["softmax/torch"])
    with Pool() as pool:
        plain = PlainTorch(pool)
        first = Workload.of(op, "rows=3,cols=5,dtype=fp32")
        prior = partial(plain.prior, op, first.dtype, "cpu")
        yield kernel, first, Conditions(here(kernel), plain, prior, {}, 1)


def test_what_was_begun_is_taken_once_and_judges_alike(setting):
    kernel, workload, conditions = setting
    ahead = Ahead(kernel, conditions)
    ahead.begin(workload)
    case = ahead.take(workload)
    assert case is not None and ahead.take(workload) is None
    own = Case.of(workload, Call.of(kernel, workload, "native", {}), conditions)
    assert all(torch.equal(case.right[n], own.right[n]) for n in own.right)
    wrong = {n: v * 1.01 for n, v in own.right.items()}
    assert case.judge(own.right) == own.judge(own.right)
    assert case.judge(wrong).finding == own.judge(wrong).finding
    ahead.close()


def test_only_this_workload_and_the_next_are_held(setting):
    kernel, workload, conditions = setting
    ahead = Ahead(kernel, conditions)
    others = [workload.replace(seed=seed) for seed in range(1, 5)]
    for each in others:
        ahead.begin(each)
    assert [ahead.take(w) is not None for w in others] == [False, False, True, True]
    ahead.begin(workload.replace(axes=(("rows", 1 << 12), ("cols", 1 << 12))))
    assert not ahead._begun, "a large workload is judged in slices"
    ahead.close()


def test_a_reference_that_raises_raises_where_the_case_is_taken(setting, monkeypatch):
    kernel, workload, conditions = setting
    ahead = Ahead(kernel, conditions)

    def fails(*args):
        raise RuntimeError("no reference")

    monkeypatch.setattr("assay.check.case.oracle", fails)
    ahead.begin(workload)
    with pytest.raises(RuntimeError, match="no reference"):
        ahead.take(workload)
    ahead.close()
