"""A kernel's limit is its own time: a busy machine, an import or a compiler cannot use it up, sleeping can."""

import contextlib
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.backends import here
from assay.check.caller import Caller
from assay.check.outcome import Conditions
from assay.check.plain import PlainTorch
from assay.check.verb import Options, plan
from assay.worker import Limits, Pool, WorkerLost, asking
from assay.worker.meter import Meter, Reading
from assay.workload import Workload

SOURCE = """
import threading, time
import torch
from assay import kernel
from assay.worker.phase import phase
{top}

@kernel("gelu", backend="torch")
def mine(x, *, out):
    out.copy_(torch.nn.functional.gelu(x))
    {body}
"""


def written(folder, body="pass", top=""):
    file = folder / "mine.py"
    file.write_text(SOURCE.format(body=body, top=top))
    return file


def asked(file, limits, beside=contextlib.nullcontext):
    """One call of the file's kernel, in a worker with these limits, beside something else."""
    (job,) = plan([file], Options(dtypes=("fp32",)))
    with Pool(limits) as pool:
        worker = pool.worker(job.kernel.address.backend, "native")
        conditions = Conditions(here(job.kernel), PlainTorch(pool), dict, {}, 1)
        caller = Caller(worker, job.kernel, Workload.of(job.op, "n=5,dtype=fp32"), conditions, False)
        with beside():
            return worker.ask(replace(caller.ask, threads=1, first=True))


@contextlib.contextmanager
def burners():
    """Five processes for every processor, none of which ever waits. Each has a session of its own: Linux shares
    processors out by session first."""
    command = [sys.executable, "-S", "-c", "while True: pass"]
    started = [subprocess.Popen(command, start_new_session=True) for _ in range(5 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for burner in started:
            burner.kill()
        for burner in started:
            burner.wait()


@pytest.mark.slow
def test_a_busy_machine_does_not_use_up_a_kernels_limit(tmp_path):
    """It computes for three times its limit by the clock, of which it gets a sixth."""
    body = "end = time.monotonic() + 4.5\n    while time.monotonic() < end: pass"
    limits = Limits(seconds=1.5)
    began = time.monotonic()
    answer = asked(written(tmp_path, body), limits, burners)
    assert time.monotonic() - began > 4.5 and answer.seconds > 3 * limits.seconds - 0.5


@pytest.mark.whole
def test_a_compiled_kernel_passes_beside_burners_with_a_limit_far_below_the_clock():
    with burners():
        began = time.monotonic()
        (record,) = assay.check("ln_gelu/inductor", workload="rows=64,cols=768,dtype=fp32", seconds=5)
    assert record.status in ("pass", "skipped"), record.reason
    assert record.status == "skipped" or time.monotonic() - began > 5


def test_a_kernel_that_computes_for_ever_is_stopped_on_a_busy_machine_too(tmp_path):
    with pytest.raises(WorkerLost, match=r"no answer within 0\.3 s") as lost:
        asked(written(tmp_path, "while True: pass"), Limits(seconds=0.3), burners)
    assert (lost.value.how, lost.value.phase, lost.value.starved) == ("timeout", "run", False)
    assert lost.value.wall_seconds > 0.3


@pytest.mark.slow
def test_a_machine_too_busy_for_any_verdict_is_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("assay.worker.limits.PATIENCE", 1.0)
    with pytest.raises(WorkerLost, match="the machine was too busy") as lost:
        asked(written(tmp_path, "while True: pass"), Limits(seconds=30, wall=2.5), burners)
    assert lost.value.starved and lost.value.how == "timeout" and lost.value.own_seconds < 30


@pytest.mark.slow
@pytest.mark.parametrize("body", ["threading.Event().wait()", "time.sleep(1000)"])
def test_a_kernel_that_sleeps_is_charged_by_the_clock(tmp_path, body):
    with pytest.raises(WorkerLost, match=r"no answer within 2 s \(") as lost:
        asked(written(tmp_path, body), Limits(seconds=2))
    assert (lost.value.how, lost.value.phase, lost.value.starved) == ("timeout", "run", False)
    assert lost.value.own_seconds < 1 and lost.value.wall_seconds >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("top", "body", "phase", "words"),
    [
        ("time.sleep(1000)", "pass", "import", "of importing its file"),
        ("", "with phase('compile'): time.sleep(1000)", "compile", "of compiling"),
    ],
    ids=["import", "compile"],
)
def test_importing_and_compiling_have_a_limit_of_their_own(tmp_path, top, body, phase, words):
    with pytest.raises(WorkerLost, match=f"no answer within 3 s {words}") as lost:
        asked(written(tmp_path, body, top), Limits(seconds=1000, compile=3))
    assert (lost.value.how, lost.value.phase) == ("timeout", phase)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("top", "body"),
    [("time.sleep(3)", "pass"), ("", "with phase('compile'): time.sleep(3)")],
    ids=["import", "compile"],
)
def test_importing_and_compiling_do_not_use_up_a_kernels_limit(tmp_path, top, body):
    assert asked(written(tmp_path, body, top), Limits(seconds=1.5)).seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "body", "words"),
    [
        (Limits(compile=3), "with phase('compile'): time.sleep(1000)", "no answer within 3 s of compiling"),
        (Limits(seconds=1000, wall=3), "while True: pass", "the machine was too busy"),
    ],
    ids=["compiler", "busy machine"],
)
def test_what_is_not_the_kernels_fault_is_inconclusive(tmp_path, monkeypatch, limits, body, words):
    monkeypatch.setattr("assay.worker.limits.PATIENCE", 0.001)
    monkeypatch.setattr("assay.check.verb.Limits", lambda *told: limits)
    (record,) = assay.check(written(tmp_path, body), dtypes="fp32", workloads=2)
    assert record.status == "inconclusive" and words in record.reason, record.reason


def test_a_kernel_that_keeps_compiling_in_between_is_charged_for_all_of_its_own_time(tmp_path):
    body = "while True:\n        with phase('compile'): pass\n        time.sleep(0.1)"
    with pytest.raises(WorkerLost) as lost:
        asked(written(tmp_path, body), Limits(seconds=2))
    assert lost.value.how == "timeout"


COMPILERS = {
    "dynamo": ("torch", "mine = torch.compile(torch.nn.functional.gelu, backend='eager')", "out.copy_(mine(x))"),
    "njit": ("njit", "import numba\n\n@numba.njit\ndef double(a):\n    return a + a", "double(x.numpy())"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILERS)
def test_compilers_are_heard_when_they_compile(name, tmp_path, monkeypatch):
    phases = []
    enter = asking._Hold.enter
    monkeypatch.setattr(asking._Hold, "enter", lambda self, phase: (phases.append(phase), enter(self, phase)))
    backend, top, body = COMPILERS[name]
    file = written(tmp_path, body, top)
    file.write_text(file.read_text().replace('backend="torch"', f'backend="{backend}"').replace("mine(x, *", "it(x, *"))
    assert asked(file, Limits()).seconds > 0
    assert phases[:3] == ["import", "run", "compile"] and phases[-1] == "run"


def test_the_library_builds_in_the_phase_of_compiling(monkeypatch):
    phases = []
    enter = asking._Hold.enter
    monkeypatch.setattr(asking._Hold, "enter", lambda self, phase: (phases.append(phase), enter(self, phase)))
    (record,) = assay.check("gelu/cuda", workload="n=5,dtype=fp32", target="sm_90")
    assert record.status in ("compiled", "pass", "skipped")
    assert record.status != "compiled" or phases[0] == "compile"


@given(wall=st.floats(0.01, 1e4), own=st.floats(0, 1e5), waited=st.floats(0, 1e5))
def test_what_is_charged_is_never_more_than_the_clock_or_the_processors_used(wall, own, waited):
    charged = Reading(wall, own, waited).charged()
    assert 0 <= charged <= max(wall, own / (os.cpu_count() or 1)) * (1 + 1e-9)
    assert charged >= own / (os.cpu_count() or 1) * (1 - 1e-9)
    assert Reading(wall, 0, 0).charged() == wall
    if waited + own <= wall:  # one thread, which slept the rest of the time
        assert charged == pytest.approx(max(wall - waited, own / (os.cpu_count() or 1)))


def test_a_meter_counts_children_and_threads():
    code = (
        "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'while True: pass'])\ntime.sleep(1000)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        meter, deadline = Meter(process.pid), time.monotonic() + 120
        while (reading := meter.read()).own < 0.5:
            assert time.monotonic() < deadline, reading
            time.sleep(0.1)
        assert meter.resident > 1 << 20 and reading.wall > 0
    finally:
        os.killpg(process.pid, 9)
        process.wait()
