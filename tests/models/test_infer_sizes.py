"""A run that names no batch size takes as many of the usual ones as fit a stated time, and says which it left out."""

from dataclasses import replace

import pytest

from assay.models.studies.infer import Options, plan, run, sizes
from assay.report.model_infer import parts
from assay.report.table import Note
from inference import QUICK, here, users_folder  # noqa: F401

CALLS = {1: 0.01, 16: 0.1, 64: 0.4, 1024: 6.4}


def test_batch_sizes_grow_until_the_next_would_take_longer_than_the_stated_time():
    assert sizes.usual(CALLS, 10.0, 6, 1e6) == sizes.Sizes((1, 16, 64, 1024))
    chosen = sizes.usual(CALLS, 10.0, 6, 60.0)  # 20 passes in each of 6 ways: 1.2, 12, 48 and 768 s
    assert chosen.batches == (1, 16) and not chosen.too_long
    assert chosen.left_out == (
        "batch 64, 1024 left out for all variants: passes of the model at all usual batch sizes would take about "
        "829 s, more than 60 s. To run: --batch 64,1024"
    )


def test_the_smallest_batch_is_run_even_if_it_takes_longer():
    assert sizes.usual(CALLS, 10.0, 6, 0.1).batches == (1,)


def test_a_call_longer_than_the_budget_is_left_out_with_the_budget_that_it_needs():
    chosen = sizes.usual(CALLS, 1.0, 6, 1e6)
    assert chosen.batches == (1, 16, 64)
    assert chosen.left_out.startswith("batch 1024 left out for all variants: one call takes about 6.4 s or more")
    assert chosen.left_out.endswith("To run: --batch 1024 --budget 7.7")


def test_batch_sizes_that_are_named_are_run_whatever_they_take():
    assert sizes.named(CALLS, 10.0) == sizes.Sizes((1, 16, 64, 1024))
    assert list(sizes.named(CALLS, 1.0).too_long) == [1024]


@pytest.mark.usefixtures("here")
def test_what_was_left_out_is_one_line_of_the_output(users, monkeypatch):
    monkeypatch.setattr(sizes, "USUAL", (1, 4))
    monkeypatch.setitem(sizes.SECONDS, "cpu", 1e-9)
    model, options = f"{users / 'model.py'}:single", Options(variants=("torch", "njit"), arms=("eager",), device="cpu")
    options = replace(options, alone=(), effort=QUICK)
    planned = plan(model, options)
    assert planned.batches == (1,)
    records = list(run(planned))
    assert len(records) == planned.measurements == 3
    notes = [part.text for part in parts(records) if isinstance(part, Note)]
    assert [text for text in notes if "--batch 4" in text] == [f"– torch: {planned.left_out}"]
    assert plan(model, replace(options, batches=(1, 4))).batches == (1, 4)
