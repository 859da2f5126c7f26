"""GPU tests are skipped, with the reason, where there is no GPU."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from assay import host

sys.path.insert(0, str(Path(__file__).parent / "support"))
import command

# Tests share the machine: threads that wait must not spin. Read when torch is first imported, here or in a child.
os.environ |= {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}

# Hundreds of processes import the same modules: they may keep what they compile.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# How long an example takes says something about the machine's other work, and nothing about the product.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True, scope="session")
def own_data(tmp_path_factory):
    """Records and machine models of tests go to a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_DATA", str(tmp_path_factory.mktemp("data")))
        patch.delenv("ASSAY_STORE", raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def small_buffers():
    """A machine may say that its last cache holds hundreds of megabytes, which bench exceeds to make its calls cold.
    Filling them takes longer than anything that a test measures."""
    from assay.bench import processes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "MOST_BYTES", 32 << 20)
        yield


@pytest.fixture
def large_buffers(monkeypatch):
    """For tests in which calls must be cold."""
    monkeypatch.setattr("assay.bench.processes.MOST_BYTES", 8 << 30)


@pytest.fixture(autouse=True)
def onednn():
    """PyTorch switches oneDNN off for the whole process where a product in bf16 fails on a processor without bf16. No
    test may do so for the next: convolutions would be computed by another library."""
    yield
    if torch := sys.modules.get("torch"):
        torch._C._set_mkldnn_enabled(True)


def pytest_collection_modifyitems(items):
    if not host.runs_on_gpu():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="no CUDA device here"))
    # Tests of processes wait more than they compute: first, they overlap with the others; last, all wait for them.
    items.sort(key=lambda item: item.path.parent.name != "worker")


@pytest.fixture
def assay():
    """Run the command inside this process: `assay("check", "gelu/torch", cwd=folder)`. Importing torch twice, for the
    judge and for the workers, takes longer than most commands."""

    def run(*arguments, cwd=None, env=None):
        done = command.assay(*arguments, cwd=cwd, env={"COLUMNS": "200"} | (env or {}))
        return subprocess.CompletedProcess(arguments, done.code, done.out, done.err)

    return run


@pytest.fixture
def assay_process():
    """The same in a process of its own, for what only a process can show."""

    def run(*arguments, cwd=None, env=None):
        return subprocess.run(
            [sys.executable, "-m", "assay", *map(str, arguments)],
            cwd=cwd,
            timeout=300,
            capture_output=True,
            text=True,
            env=os.environ | {"COLUMNS": "200", "PYTHONPATH": str(ROOT / "src")} | (env or {}),
        )

    return run


@pytest.fixture
def write(tmp_path):
    """Write a file of the user's: `file = write("my.py", '''…''')`."""

    def put(name, text):
        file = tmp_path / name
        file.write_text(textwrap.dedent(text))
        return file

    return put


@pytest.fixture
def in_this_process(monkeypatch):
    """A study of a model without processes: `in_this_process(child, verb, end=…)` gives the child's answers here,
    wherever the modules after it would start a process, and calls `end` where one would end. What such a process sets
    for all of PyTorch is put back."""
    import torch

    from assay.worker.failure import describe
    from assay.worker.fresh import Refused

    def stand_in(child, *modules, end):
        class Here:
            def __init__(self, *about):
                pass

            def ask(self, question, seconds, tick):
                try:
                    return json.loads(json.dumps(child.answer(json.loads(json.dumps(question)), tick)))
                except Exception as error:
                    raise Refused(describe(error)) from None

            def __enter__(self):
                return self

            def __exit__(self, *_):
                end()

        for module in modules:
            monkeypatch.setattr(module, "Fresh", Here)

    flags = {
        "allow_tf32": torch.backends.cudnn,
        "allow_bf16_reduced_precision_reduction": torch.backends.cuda.matmul,
        "allow_fp16_reduced_precision_reduction": torch.backends.cuda.matmul,
    }
    before = {name: getattr(place, name) for name, place in flags.items()}
    threads = torch.get_num_threads()
    yield stand_in
    for name, place in flags.items():
        setattr(place, name, before[name])
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def one_thread():
    """More would wait for each other on a shared machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not path:
        pytest.skip("no chromium here: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright here: pip install playwright")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
