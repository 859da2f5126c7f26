"""Processes that are killed, at either end: none outlives its parent, no kernel's record is lost with another's."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import assay
from assay.worker import Pool, WorkerLost, forking

PATIENCE = 120
"""Seconds until something that takes one on a quiet machine counts as never happening."""
HEAD = """
import contextlib, os, signal, subprocess, threading, time
import psutil, torch
from assay import kernel

def signalled(number):
    os.kill(os.getppid(), number)
    time.sleep(60)

def right(x, out):
    out.copy_(torch.nn.functional.gelu(x))
"""
KERNEL = """
@kernel("gelu", backend="torch", variant="{name}")
def mine(x, *, out):
    right(x, out)
    {body}
"""


def written(folder, name, body):
    file = folder / f"{name}.py"
    file.write_text(HEAD + KERNEL.format(name=name, body=body))
    return file


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found


def living(processes):
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


BUSY = """subprocess.Popen(["sleep", "1000"]); subprocess.Popen(["sleep", "1001"], start_new_session=True)
    open({started!r}, "w").write(" ".join(str(p.pid) for p in psutil.Process().children()))
    while True: {doing}"""
CHECK = "import os; os.cpu_count = lambda: {cores}\nfrom assay.cli import main\nmain()"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("doing", "cores"), [("pass", 1), ("time.sleep(1)", 8)], ids=["computes, one judge", "sleeps, several judges"]
)
def test_a_killed_command_leaves_no_process_and_no_folder_behind(tmp_path, doing, cores):
    started, scratch = tmp_path / "started", tmp_path / "scratch"
    scratch.mkdir()
    file = written(tmp_path, "busy", BUSY.format(started=str(started), doing=doing))
    command = [
        sys.executable,
        "-c",
        CHECK.format(cores=cores),
        "check",
        str(file),
        "gelu/torch",
        "silu/torch",
        "axpy/torch",
        "--dtype",
        "fp32",
        "--workloads",
        "2",
        "--jobs",
        "4",
    ]
    environment = os.environ | {"TMPDIR": str(scratch), "ASSAY_STORE": "none"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until(lambda: started.exists() and len(started.read_text().split()) == 2, "the kernel never ran")
    family = psutil.Process(process.pid).children(recursive=True)
    assert {int(pid) for pid in started.read_text().split()} < {p.pid for p in family}
    assert list(scratch.glob("assay-worker-*"))
    process.kill()
    process.wait()
    until(lambda: not living(family), f"still there: {living(family)}")
    until(lambda: not list(scratch.glob("assay-worker-*")), "a folder was left behind")


def test_a_command_killed_while_torch_is_imported_leaves_no_process_behind(tmp_path):
    hook = "import sys, time\nif '-m' in sys.orig_argv and 'assay.worker.zygote' in sys.orig_argv:\n"
    # Stands in for a torch whose import takes minutes.
    hook += "    import importlib.abc\n    class Slow(importlib.abc.MetaPathFinder):\n"
    hook += "        def find_spec(self, name, *_):\n            if name == 'torch': time.sleep(1000)\n"
    hook += "    sys.meta_path.insert(0, Slow())\n"
    (tmp_path / "sitecustomize.py").write_text(hook)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    code = "from assay.worker import Pool; Pool().worker('torch', 'native')"
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    family = until(lambda: psutil.Process(process.pid).children(recursive=True), "nothing was started")
    until(lambda: family[0].is_running() and "zygote" in " ".join(family[0].cmdline()), "it never got so far")
    time.sleep(1)
    process.kill()
    process.wait()
    until(lambda: not living(family), f"still there: {living(family)}")


LOSSES = {
    # what a kernel does: (status, a word of the reason)
    "kills_its_zygote": ("fail", "was killed by SIGKILL while this kernel ran", "signalled(9)"),
    "ends_its_zygote": ("fail", "was killed by SIGTERM while this kernel ran", "signalled(15)"),
    "kills_all_above": (
        "fail",
        "forks workers was killed together with the one above it",
        "above = psutil.Process().parents()[1::-1]; [p.kill() for p in above]; time.sleep(60)",
    ),
    "kills_the_root": ("pass", "", "with contextlib.suppress(psutil.Error): psutil.Process().parents()[1].kill()"),
    "kills_its_group": ("fail", "SIGKILL", "os.killpg(0, 9)"),
    "stops_its_zygote": ("pass", "", "os.kill(os.getppid(), signal.SIGSTOP)"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "jobs"), [("kills_its_zygote", 1), *((name, 3) for name in LOSSES)])
def test_a_kernel_that_kills_what_forks_workers_costs_no_other_its_verdict(name, jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(forking, "_PROMPT", 3.0)
    status, words, body = LOSSES[name]
    files = [written(tmp_path, n, b) for n, b in (("good", "pass"), (name, body), ("fine", "pass"))]
    records = {r.kernel.rpartition(":")[2]: r for r in assay.check(*files, dtypes="fp32", workloads=3, jobs=jobs)}
    assert (records[name].status, words in records[name].reason) == (status, True), records[name].reason
    assert status == "pass" or records[name].evidence["detector"] == "crash"
    assert records["good"].status == records["fine"].status == "pass", records["fine"].reason


@pytest.mark.slow
def test_a_child_that_moved_out_of_its_group_ends_with_its_worker(tmp_path):
    started = tmp_path / "started"
    body = f"""subprocess.Popen(["sleep", "1002"], start_new_session=True)
    open({str(started)!r}, "w").write(str(psutil.Process().children()[0].pid))
    os.abort()"""
    (record,) = assay.check(written(tmp_path, "leaves", body), dtypes="fp32", workload="n=5,dtype=fp32")
    assert "SIGABRT" in record.reason
    child = int(started.read_text())
    until(lambda: not psutil.pid_exists(child), "the child lives on")


REFERENCES = {
    "raises": ("ZeroDivisionError", "return x / (1 // 0)"),
    "exits": ("SystemExit", "raise SystemExit(3)"),
    "interrupts": ("KeyboardInterrupt", "raise KeyboardInterrupt"),
    "runs_out_of_memory": ("MemoryError", "raise MemoryError('of 3 TiB')"),
}
OP = '''
from assay import Axis, Tensor, kernel, op

@op(axes={{"n": Axis(typical=1024)}}, inputs={{"x": Tensor("n")}}, outputs={{"out": Tensor("n")}})
def mine_{name}(x):
    """Ours."""
    {body}

@kernel("mine_{name}", backend="torch")
def mine(x, *, out):
    out.copy_(x)
'''


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_that_fails_is_an_inconclusive_record(name, tmp_path):
    words, body = REFERENCES[name]
    bad, good = tmp_path / "bad.py", written(tmp_path, "good", "pass")
    bad.write_text(OP.format(name=name, body=body))
    records = {r.source["file"]: r for r in assay.check(bad, good, dtypes="fp32", workloads=2)}
    record = records[str(bad)]
    assert record.status == "inconclusive" and words in record.reason, record.reason
    assert f"bad.py:{bad.read_text().splitlines().index('    ' + body) + 1}" in record.reason
    assert "Traceback" not in record.reason and record.replay
    assert records[str(good)].status == "pass"


FORKED = """
import json, os, sys
os.cpu_count = lambda: 4
import assay
records = list(assay.check(*{files!r}, dtypes="fp32", workloads=2, jobs=2))
print(json.dumps([[r.kernel, r.status, r.reason, "torch" in sys.modules] for r in records]))
"""


@pytest.mark.slow
def test_with_cores_to_spare_several_processes_judge_and_one_that_dies_costs_only_the_job_that_ended_it(tmp_path):
    """The one that hands out the work does not import torch."""
    deadly = tmp_path / "deadly.py"
    body = (
        "import os, signal\n    if str(x.dtype) == 'torch.float64': os.kill(os.getpid(), signal.SIGKILL)\n    return x"
    )
    deadly.write_text(OP.format(name="kills", body=body))
    files = [deadly, written(tmp_path, "crashes", "os.abort()"), written(tmp_path, "good", "pass"), "axpy/torch"]
    code = FORKED.format(files=[str(f) for f in files])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=5 * PATIENCE)
    records = {name.rpartition(":")[2]: (status, reason) for name, status, reason, _ in json.loads(done.stdout)}
    lost, why = records.pop("mine")
    assert lost == "inconclusive" and "the process that judged it was killed by SIGKILL, twice" in why
    statuses = {name: status for name, (status, _) in records.items()}
    assert statuses == {"crashes": "fail", "good": "pass", "axpy/torch": "pass"}, done.stderr
    assert not any(loaded for *_, loaded in json.loads(done.stdout))
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_too_many_open_files_are_a_sentence(tmp_path):
    code = """
import json, os
from assay.worker import Pool, WorkerLost
with Pool() as pool:
    pool.worker("torch", "native").close()
    held = []
    try:
        while True: held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        os.close(held.pop())
    try:
        pool.worker("torch", "native")
    except WorkerLost as lost:
        said = [lost.how, lost.detail]
    for handle in held: os.close(handle)
    said.append(pool.worker("torch", "native").pid > 0)
print(json.dumps(said))
"""
    limited = ["bash", "-c", 'ulimit -n 256; exec "$@"', "-", sys.executable, "-c", code]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=5 * PATIENCE)
    how, words, afterwards = json.loads(done.stdout or done.stderr)
    assert how == "start" and "too many files open" in words and "ulimit -n" in words and afterwards


def test_memory_that_cannot_be_had_is_a_sentence_and_the_worker_lives():
    with Pool() as pool:
        worker = pool.worker("torch", "native")
        with pytest.raises(WorkerLost, match="GiB of shared memory for the tensors of this workload") as lost:
            worker.memory(1 << 50)
        assert lost.value.how == "room"
        assert len(worker.memory(4096)) == 4096


def test_a_folder_of_a_killed_process_is_removed_by_the_next(tmp_path, monkeypatch):
    from assay.worker import scratch

    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    mine = scratch.Scratch()
    left = Path(scratch.tempfile.mkdtemp(prefix="assay-worker-"))
    young = Path(scratch.tempfile.mkdtemp(prefix="assay-worker-"))
    for folder in (mine.path, left):
        os.utime(folder, (0, 0))
    subprocess.run(
        [sys.executable, "-c", "from assay.worker import scratch; scratch.sweep()"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        check=True,
    )
    assert (mine.path.exists(), left.exists(), young.exists()) == (True, False, True)
    mine.close()
    assert not mine.path.exists()


def test_no_room_for_temporary_files_is_a_sentence(tmp_path, monkeypatch):
    from assay.worker import scratch

    monkeypatch.chdir(tmp_path)  # where no process that forks workers was started yet
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path / "gone"))
    (record,) = assay.check(written(tmp_path, "good", "pass"), dtypes="fp32", workloads=2)
    assert record.status == "inconclusive" and "no worker could be started" in record.reason
    assert str(tmp_path / "gone") in record.reason and "Traceback" not in record.reason


def test_signals_that_have_no_name_are_told_by_number():
    assert forking.signal_name(signal.SIGKILL) == "SIGKILL" and forking.signal_name(40) == "signal 40"
