"""Calls with delays in the kernel's code, without a GPU: what the worker would answer is made here."""

import time
from types import SimpleNamespace

import pytest

from assay.catalog.select import select
from assay.check import delayed, runs
from assay.check.judge import Finding
from assay.check.outcome import Outcome
from assay.dtype import dtype
from assay.worker import WorkerLost
from assay.workload import Workload

((KERNEL, OP),) = select(["sum/triton"])
POINTS = [Workload.of(OP, f"n={n},dtype=fp32") for n in (300, 4000)]
WRONG = Outcome(Finding("values", "`out` is 3, must be 4"), delayed=2)
RIGHT = Outcome(delayed=2)


@pytest.fixture
def look(monkeypatch):
    """Looks where outcomes come in this order; they may be exceptions."""

    def look(*outcomes, deadline=None):
        left = list(outcomes)
        asked.clear()

        def run(worker, kernel, workload, conditions):
            asked.append((str(workload), conditions.delays))
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(delayed.trial, "run", run)
        pool = SimpleNamespace(worker=lambda backend, mode: SimpleNamespace(close=lambda: None))
        conditions = delayed.Conditions(SimpleNamespace(mode="native"), None, None, {}, 1)
        return delayed.Delayed(KERNEL, pool, conditions).look(POINTS, deadline)

    asked = look.asked = []
    return look


def test_a_wrong_result_with_delays_alone_is_a_race(look):
    seen, race = look(RIGHT, WRONG, RIGHT)
    assert not seen.clean and "n=4000" in race and "must be 4" in race and "barrier" in race
    assert [kind for _, kind in look.asked] == ["random", "random", "still"]


REFUSED = Outcome(Finding("launch", "too many resources requested"), delayed=1, lost=True)


@pytest.mark.parametrize("outcome", [WRONG, REFUSED])
def test_a_result_that_is_wrong_in_the_control_too_is_none(look, outcome):
    seen, race = look(outcome, outcome)
    assert seen.clean and not race and f"without waiting, too: {outcome.finding.what}" in seen.trouble


def test_a_launch_that_the_device_refuses_with_delays_alone_is_a_race(look):
    """A barrier in memory that is used before it was set up ends the kernel instead of making its result wrong."""
    seen, race = look(Outcome(Finding("launch", "unspecified launch failure"), delayed=2, lost=True), RIGHT)
    assert not seen.clean and "unspecified launch failure" in race


def test_a_kernel_that_ends_only_without_delays_has_a_race(look):
    """A thread that is late misses the phase of an mbarrier. A worker that is lost has not said what it changed."""
    hangs = Outcome(Finding("timeout", "no answer in 30 s"), lost=True)
    seen, race = look(hangs, RIGHT, hangs)
    assert not seen.clean and seen.codes == 2 and "n=300" in race and "it does not end" in race
    seen, race = look(hangs, RIGHT, RIGHT)  # other work kept the GPU from it
    assert seen.clean and not race and "ended when it was called again" in seen.trouble
    seen, race = look(hangs, RIGHT, WRONG)
    assert not seen.clean and "must be 4" in race
    seen, race = look(hangs, hangs)
    assert seen.clean and not race and "without waiting, too" in seen.trouble
    seen, race = look(hangs, Outcome())
    assert seen.clean and not race and "nothing was built" in seen.trouble


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(Finding("exception", "TypeError: no such argument"), delayed=1), "no such argument"),
        (Outcome(), "nothing was built"),
        (WorkerLost("timeout", "no answer in 60 s"), "no answer"),
        (RuntimeError("out of memory"), "RuntimeError: out of memory"),
    ],
)
def test_what_is_no_result_is_told_and_is_no_verdict(look, outcome, words):
    seen, race = look(outcome)
    assert seen.clean and not race and words in seen.trouble


def test_the_time_limit_is_respected(look):
    seen, race = look(deadline=time.monotonic() - 1)
    assert seen.workloads == [] and seen.trouble == "the time limit" and not race


def test_right_results_are_counted(look):
    seen, race = look(RIGHT, RIGHT)
    assert (seen.clean, len(seen.workloads), seen.codes, race) == (True, 2, 2, "")


@pytest.mark.parametrize("address", ["sum/triton", "softmax/cuda", "conv2d/cuda", "attention/triton", "softmax/numba"])
def test_the_typical_sizes_come_first_and_others_have_several_warps(address):
    ((kernel, op),) = select([address])
    first, *others = delayed.chosen(kernel, op, dtype("fp32"), 0)
    assert 1 << 14 <= first.elements <= 1 << 20 and len(others) >= 3
    assert all(w.values == "normal" and 256 <= w.elements <= 1 << 23 for w in others)
    assert sum(w.elements <= 1 << 17 for w in others) >= 3


@pytest.mark.parametrize("address", ["mx_linear/cuda", "layernorm/numba", "conv2d/cuda:inline_ptx", "attention/triton"])
def test_blocks_go_on_to_another_tile_along_each_of_up_to_three_axes(address):
    ((kernel, op),) = select([address])
    workloads = delayed.chosen(kernel, op, dtype("fp32"), 0)
    long = [w for w in workloads if 1 << 20 < w.elements <= 5 << 20]
    assert len({name for w in long for name, size in w.axes if size >= 1 << 14}) == (
        min(len(op.axes), 3) if address != "attention/triton" else 0  # its threads hand nothing on
    )


def test_blocks_go_on_beyond_the_largest_grid():
    ((kernel, op),) = select(["int_linear/cuda"])  # min(cdiv(m, 8), 65535) blocks, or min(cdiv(m, 64), 65535)
    axes = [dict(w.axes) for w in delayed.chosen(kernel, op, dtype("fp32"), 0)]
    assert {"m": 524281, "n": 2, "k": 2} in axes  # one of them
    assert {"m": 2 * 64 * 65535, "n": 8, "k": 8} in axes  # and all


def test_calls_take_turns_between_two_sets_of_values():
    plan = runs.delayed()
    assert {run.values for run in plan} == {0, 1} and {run.place for run in plan} == {0, 1, 2}
    # The first call at the other bands has the first values: both results are compared.
    assert next(run for run in plan if run.place == runs.OTHER_BANDS).values == runs.USUAL
