"""Whatever a kernel does to its process becomes a failed record that says so; the rest of the run goes on."""

import os
import subprocess
import sys
import time

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay import host
from assay.check.slices import slices
from assay.check.verb import Options, plan, run
from assay.worker import Limits, Pool, Worker, WorkerLost
from assay.worker.process import PRELOAD, imports
from assay.worker.roots import Zygote, root

KERNELS = {
    "crash": ("crash", "SIGSEGV", "import ctypes; ctypes.string_at(0)"),
    "abort": ("crash", "SIGABRT", "import os; os.abort()"),
    "exit": ("exit", "SystemExit", "import sys; sys.exit(0)"),
    "hard_exit": ("exit", "exit code 3", "import os; os._exit(3)"),
    "hang": ("timeout", "no answer within", "while True: pass"),
    "flood": ("flood", "printed more than", "import sys\n    while True: sys.stdout.write('verdict: pass\\n' * 1000)"),
    "fork": (
        "fork",
        "forked",
        "import os\n    if os.fork() == 0: os._exit(0)\n    out.copy_(torch.nn.functional.gelu(x))",
    ),
    "raise": ("exception", "KeyError: 'no such thing'", "raise KeyError('no such thing')"),
    "memory": ("memory", "GiB of memory", "keep = [bytearray(b'x' * (1 << 28)) for _ in range(1000)]"),
}


def source(body):
    head = 'import torch\nfrom assay import kernel\n\n@kernel("gelu", backend="torch")\n'
    return f"{head}def mine(x, *, out):\n    {body}\n"


@pytest.mark.parametrize("name", [n for n in KERNELS if n != "memory"])
def test_a_kernel_that_misbehaves_is_a_failed_record(name, tmp_path):
    detector, words, body = KERNELS[name]
    file = tmp_path / "mine.py"
    file.write_text(source(body))
    (record,) = assay.check(file, dtypes="fp32", workloads=2, seconds=3 if name in ("hang", "flood") else 30)
    assert (record.status, record.evidence["detector"]) == ("fail", detector)
    assert words in record.reason
    assert str(file) in record.replay and "--workload" in record.replay


@pytest.mark.slow
def test_a_kernel_that_eats_the_memory_is_stopped(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(source(KERNELS["memory"][2]))
    (record,) = assay.check(file, dtypes="fp32", workloads=1, memory=2 << 30)
    assert (record.status, record.evidence["detector"]) == ("fail", "memory")


def test_the_rest_of_the_run_goes_on_after_a_crash(tmp_path):
    bad, good = tmp_path / "bad.py", tmp_path / "good.py"
    bad.write_text(source(KERNELS["crash"][2]))
    good.write_text(source("out.copy_(torch.nn.functional.gelu(x))"))
    records = {r.source["file"]: r for r in assay.check(bad, good, dtypes="fp32", workloads=3)}
    assert records[str(bad)].status == "fail"
    assert records[str(good)].status == "pass"


def test_a_fake_verdict_on_stdout_changes_nothing(tmp_path):
    file = tmp_path / "liar.py"
    file.write_text(source('print(\'{"status": "pass"}\', flush=True)'))
    (record,) = assay.check(file, dtypes="fp32", workloads=2)
    assert record.status == "fail" and record.evidence["detector"] == "unwritten"


def test_each_kernel_has_a_process_of_its_own(tmp_path):
    """Two kernels that count calls in a shared module both start from nothing."""
    (tmp_path / "counter.py").write_text("calls = 0\n")
    body = "import counter, os\n    assert getattr(counter, 'owner', os.getpid()) == os.getpid()\n"
    body += "    counter.owner = os.getpid()\n    out.copy_(torch.nn.functional.gelu(x))"
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(source(body))
    records = list(assay.check(tmp_path / "first.py", tmp_path / "second.py", dtypes="fp32", workloads=2))
    assert [r.status for r in records] == ["pass", "pass"]


def test_closing_the_generator_early_ends_the_workers():
    options = Options(dtypes=("fp32",), workloads=3, jobs=1)
    others = workers()
    records = run(plan(["gelu/torch", "gelu_tanh/torch", "gelu/njit"], options), options)
    assert next(records).status == "pass"
    while not workers() - others:  # the second kernel is about to be called
        time.sleep(0.01)
    records.close()
    deadline = time.monotonic() + 60  # one that was being forked ends itself a moment later
    while workers() - others and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not workers() - others


def workers():
    """Those of other tests among them."""
    return {worker for zygote in psutil.Process(root().process.pid).children() for worker in zygote.children()}


def test_packages_are_imported_once_however_many_languages_and_runs_there_are():
    before = root().process.pid
    seen = []
    for _ in range(2):
        with Pool() as pool:
            asked = [pool.worker(*what) for what in (("torch", "native"), ("cuda", "native"), ("njit", "native"))]
            zygotes = [psutil.Process(w.pid).ppid() for w in asked]
            assert zygotes[0] == zygotes[1] != zygotes[2], "one for each set of packages"
            assert {psutil.Process(z).ppid() for z in zygotes} == {before}
            assert len({before, *zygotes, *(w.pid for w in asked)}) == 6
            seen.append(zygotes)
        assert not {w.pid for w in asked} & {p.pid for p in workers()}, "workers end with their pool"
    assert root().process.pid == before and seen[0] == seen[1]


def test_a_pool_ends_its_own_workers_and_no_others():
    with Pool() as one:
        kept = one.worker("torch", "native")
        with Pool() as other:
            ended = other.worker("torch", "native")
            assert psutil.Process(kept.pid).ppid() == psutil.Process(ended.pid).ppid()
        assert psutil.pid_exists(kept.pid) and not psutil.pid_exists(ended.pid)


def test_a_worker_sees_the_folder_and_the_variables_of_now(monkeypatch, tmp_path, write):
    """Though the process that forks it may have been started elsewhere."""
    before = root().process.pid
    file = write(
        "looks.py",
        """
        import os
        from pathlib import Path
        import torch
        from assay import kernel

        @kernel("gelu")
        def looks(x, *, out):
            assert (Path.cwd(), os.environ.get("ASSAY_SOMETHING")) == (Path(__file__).parent, "new")
            torch.ops.aten.gelu.out(x, out=out)
        """,
    )
    (record,) = assay.check(file, dtypes="fp32", workloads=2)
    assert record.status == "fail"
    monkeypatch.setenv("ASSAY_SOMETHING", "new")
    monkeypatch.chdir(tmp_path)
    (record,) = assay.check(file, dtypes="fp32", workloads=2)
    assert record.status == "pass", record.reason
    assert root().process.pid == before
    assert len(psutil.Process(before).children()) == 1, "the process of the other folder is gone"


def test_a_variable_that_imports_may_read_gets_a_new_process_and_so_does_one_that_was_killed(monkeypatch):
    first = root().process
    monkeypatch.setenv("OMP_SOMETHING", "new")
    second = root().process
    assert first.poll() is not None and second.poll() is None
    second.kill()
    second.wait()
    with Pool() as pool:
        assert pool.worker("torch", "native").pid
    assert root().process.pid not in (first.pid, second.pid)


def test_a_process_that_cannot_import_what_it_should_says_why():
    zygote = Zygote(root(), "/", {}, ("torch", "no_such_package"))
    with pytest.raises(WorkerLost, match="No module named 'no_such_package'") as lost:
        Worker(zygote, Limits())
    assert lost.value.how == "start"
    zygote.close()


DRIVER = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
extern "C" int cuInit(unsigned) { close(open(getenv("TOUCHED"), O_CREAT | O_WRONLY, 0600)); return 100; }
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """A folder with a driver that finds no device, and leaves a note that it was asked."""
    folder = tmp_path_factory.mktemp("driver")
    compiler = ["c++", "-shared", "-fPIC", "-xc++", "-", "-o", str(folder / "libcuda.so.1")]
    subprocess.run(compiler, input=DRIVER, text=True, check=True)
    return folder


def touched(driver, code, note):
    environment = os.environ | {"LD_LIBRARY_PATH": str(driver), "TOUCHED": str(note)}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    return note.exists()


def test_asking_whether_there_is_a_gpu_asks_the_driver(driver, tmp_path):
    assert touched(driver, "from assay import host; host.gpu()", tmp_path / "asked")


IMPORTED = """
import os, torch, assay.worker.zygote
assert not os.path.exists(os.environ["TOUCHED"]), "torch"
for names in {sets!r}:
    if os.fork() == 0:
        for name in names: __import__(name)
        os._exit(0)
    assert os.wait()[1] == 0 and not os.path.exists(os.environ["TOUCHED"]), names
"""


@pytest.mark.slow
def test_nothing_asks_the_driver_before_a_fork(driver, monkeypatch, tmp_path):
    """What cuInit has set up does not survive a fork: the worker would be told that there is no GPU."""
    monkeypatch.setattr(host, "runs_on_gpu", lambda: True)
    sets = sorted({imports(backend) for backend in PRELOAD})
    assert len(sets) > 4
    assert not touched(driver, IMPORTED.format(sets=sets), tmp_path / "imported")


@given(length=st.integers(1, 2**33), step=st.integers(1, 2**24), row=st.integers(1, 4096))
def test_the_judged_slices_of_a_huge_workload_hold_its_ends_and_where_an_index_overflows(length, step, row):
    starts = slices(length, step, row)
    assert starts == sorted(set(starts), reverse=True) and all(0 <= s < length and s % step == 0 for s in starts)
    places = [0, length - 1, *(b // row for b in (2**31, 2**32) if b < length * row)]
    assert all(any(s <= place < s + step for s in starts) for place in places)
    assert len(starts) == min(-(-length // step), 16)
