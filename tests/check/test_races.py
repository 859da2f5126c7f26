"""Looking for races beside a check. Both ways need a GPU: here their reports are made."""

import threading
import time
from dataclasses import replace

import pytest

from assay.backends import Availability, Level
from assay.catalog.select import select
from assay.check import racecheck, races
from assay.check.delayed import Delayed
from assay.check.evidence import Delays
from assay.check.outcome import Conditions
from assay.dtype import dtype
from assay.record import Record, Status
from assay.sanitize import Problem, Report
from assay.workload import Workload

FP32 = dtype("fp32")
PASSED = Record("check", "sum/cuda", "dtype=fp32", Status.PASS, "140 workloads", "run", {}, "", {}, [], {}, 1.0)
ERROR = Problem("racecheck", "Race between write and read", "sum", "k.cu:7", text="Error: Race reported between Write")
WARNING = replace(ERROR, text="Warning: Race reported between Write")


@pytest.fixture
def asked(monkeypatch):
    """The workloads that racecheck is asked for; what it reports is the list's attribute."""

    class Asked(list):
        report = Report("racecheck", ())
        endless = False

    seen = Asked()

    def run(kernel, workload, tool, parameters, seconds, stopped):
        seen.append((tool, workload))
        while seen.endless and not stopped():
            time.sleep(0.01)
        return seen.report

    monkeypatch.setattr(racecheck.sanitize, "run", run)
    monkeypatch.setattr(racecheck.sanitize, "why_not", lambda kernel: ("", ""))
    monkeypatch.setattr(races, "_begun", set())
    monkeypatch.setattr(Delayed, "look", lambda self, workloads, deadline: (seen.delays, seen.race))
    seen.delays, seen.race = Delays(True, ["n=7"], 1), ""
    return seen


def beside(address, workload=None, run="a run", device="cuda", **more):
    ((kernel, op),) = select([address])
    conditions = Conditions(Availability(Level.RUN, "", device=device), None, None, {}, 1)
    on = Workload.of(op, workload) if workload else None
    return races.beside(kernel, op, FP32, on, None, conditions, run, **more)


def test_whoever_stops_the_run_does_not_wait_for_racecheck(asked):
    asked.endless = True
    stop = threading.Event()
    join = beside("sum/cuda", stopped=stop.is_set)
    threading.Timer(0.1, stop.set).start()
    assert join(PASSED) == PASSED


def test_a_race_is_a_failure_of_a_kernel_whose_results_are_right(asked):
    asked.report = Report("racecheck", (ERROR,))
    record = beside("conv2d/cuda")(PASSED)
    assert record.status == "fail" and record.detector == "race" and "k.cu:7" in record.reason


@pytest.mark.parametrize(
    "report", [Report("racecheck", ()), Report("racecheck", (WARNING,)), Report("racecheck", (), "not done")]
)
def test_what_is_no_certain_race_is_kept_as_evidence(asked, report):
    asked.report = report
    record = beside("sum/cuda")(PASSED)
    assert record.status == "pass" and record.evidence["racecheck"]["clean"] == report.clean


def test_a_failure_is_not_explained_by_it(asked):
    asked.report = Report("racecheck", (ERROR,))
    failed = replace(PASSED, status=Status.FAIL)
    assert beside("sum/cuda")(failed) == failed


def test_it_runs_on_the_typical_workload_in_the_first_dtype_alone(asked):
    for _ in range(2):
        beside("layernorm/cuda")(PASSED)
    ((tool, workload),) = asked
    assert tool == "racecheck" and dict(workload.axes)["cols"] == workload.op.axes["cols"].typical
    assert workload.elements <= 1 << 24


def test_it_runs_again_in_the_next_run(asked):
    """In a notebook, where the kernel may have been edited meanwhile."""
    for run in ("first", "second"):
        beside("sum/cuda", run=run)(PASSED)
    assert len(asked) == 2


def test_it_runs_on_a_workload_that_was_named(asked):
    for _ in range(2):
        beside("sum/cuda", "n=77,dtype=fp32")(PASSED)
    assert [dict(w.axes)["n"] for _, w in asked] == [77, 77]


def test_racecheck_does_not_understand_copies_in_the_background(asked):
    asked.report = Report("racecheck", (ERROR,))
    record = beside("layernorm_backward/cuda")(PASSED)
    assert record.status == "pass" and not record.evidence["racecheck"]["clean"]


@pytest.mark.parametrize("address", ["gelu/cuda", "sum/triton", "sum/torch", "sum/njit"])
def test_it_does_not_run_without_shared_memory_that_its_author_manages(asked, address):
    beside(address)(PASSED)
    assert not asked


@pytest.mark.parametrize("address", ["softmax/cuda", "softmax/cupy", "softmax/numba", "transpose/cuda", "rmsnorm/cuda"])
def test_it_runs_where_shared_memory_is_used(asked, address):
    beside(address)(PASSED)
    assert asked


@pytest.mark.parametrize("address", ["sum/triton", "gelu/cuda", "softmax/cupy", "softmax/numba"])
def test_a_race_that_delays_show_is_a_failure(asked, address):
    asked.delays, asked.race = Delays(False, ["n=7"], 1, "on n=7: wrong"), "wrong when its warps wait"
    record = beside(address)(PASSED)
    assert record.status == "fail" and record.detector == "race" and record.reason == "race: wrong when its warps wait"
    assert record.evidence["delays"]["problem"] == "on n=7: wrong"


def test_both_reports_are_kept_and_the_first_race_is_the_reason(asked):
    asked.report, asked.delays, asked.race = Report("racecheck", (ERROR,)), Delays(False, ["n=7"], 1, "wrong"), "later"
    record = beside("conv2d/cuda")(PASSED)
    assert "k.cu:7" in record.reason and not record.evidence["delays"]["clean"]


@pytest.mark.parametrize(("address", "device"), [("sum/torch", "cuda"), ("sum/njit", "cpu"), ("sum/triton", "cpu")])
def test_nothing_is_delayed_without_code_for_a_gpu(asked, address, device):
    assert "delays" not in beside(address, device=device)(PASSED).evidence


def test_delays_run_in_every_dtype_and_racecheck_in_the_first(asked):
    """Code for 16 bits has barriers of its own."""
    for _ in range(3):
        assert "delays" in beside("layernorm/cuda")(PASSED).evidence
    assert len(asked) == 1
