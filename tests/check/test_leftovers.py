"""A wrong result that equals the old content: it was not written, or it is alike by chance."""

import random
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.catalog import library
from assay.check import leftovers
from assay.check.case import Case
from assay.check.explaining import explained as explained_by
from assay.check.judge import Finding
from assay.check.outcome import Conditions
from assay.check.plain import Baseline
from assay.check.runs import FRESH, Done, Run
from assay.dtype import dtype
from assay.inputs import generate
from assay.workload import Workload


@pytest.fixture
def case(one_thread):
    workload = Workload.of(library.find_op("gelu"), "n=512,dtype=bf16")
    plain = SimpleNamespace(baseline=lambda w, inputs, truth, device: Baseline({"out": w.op.reference(inputs["x"])}))
    conditions = Conditions(SimpleNamespace(device="cpu"), plain, dict, {}, 1)
    layout = SimpleNamespace(outputs=[SimpleNamespace(name="out", dtype="bf16")])
    return Case(workload, layout, conditions, generate(workload))


def called(result, held, kind):
    return Done(Run(FRESH, held=kind), {"out": result}, {"out": held}, {"out": result})


def explained(case, result, held, kind="other", again=pytest.fail):
    """With "other", the contents would be the same again: no further call shows more."""
    call = called(result, held, kind)
    earlier = [SimpleNamespace(run=Run(0)), SimpleNamespace(run=Run(1))] if kind == "other" else []
    return explained_by(Finding("values", "it is off"), [case] * 3, FRESH, [*earlier, call], again)


def test_an_element_that_kept_its_content_and_nothing_else_is_wrong_was_not_written(case):
    held = case.right["out"] + 1
    result = case.right["out"].clone()
    result[7:9] = held[7:9]
    finding = explained(case, result, held)
    assert finding.detector == "unwritten" and "2 of 512 elements of `out`" in finding.what


def test_where_other_elements_are_wrong_too_one_that_equals_its_content_proves_nothing(case):
    result = case.right["out"] * 1.25
    held = case.right["out"] + 1
    held[7] = result[7]
    assert explained(case, result, held).detector == "values"


@pytest.mark.parametrize("written, detector", [(3, "unwritten"), (500, "values")])
def test_elements_that_keep_random_bits_again_were_not_written_even_if_a_few_are(case, written, detector):
    """A kernel that writes only where the output is no number writes where random bits are a NaN."""
    random = torch.randn(512).to(torch.bfloat16)

    def again(run):
        held = torch.randn(512).to(torch.bfloat16)
        result = held.clone()
        result[:written] = case.right["out"][:written]
        return called(result, held, "random")

    assert explained(case, random, random, "random", again).detector == detector


@given(st.integers(0, 1 << 30))
@settings(max_examples=50, deadline=None)
def test_contents_of_one_byte_differ_from_the_right_result_and_from_the_contents_before(seed):
    rng = random.Random(seed)
    right, unlike = (torch.randint(-128, 128, (4000,), dtype=torch.int8) for _ in range(2))
    found = leftovers.before("random", (4000,), dtype("int8"), rng, right, unlike=unlike)
    assert not (found == right).any() and not (found == unlike).any()
