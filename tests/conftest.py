"""GPU tests are skipped, with the reason, where there is no GPU."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from assay import host

# Tests share the machine: threads that wait must not spin. Read when torch is first imported, here or in a child.
os.environ |= {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True, scope="session")
def own_data(tmp_path_factory):
    """Records and machine models of tests go to a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_DATA", str(tmp_path_factory.mktemp("data")))
        patch.delenv("ASSAY_STORE", raising=False)
        yield


def pytest_collection_modifyitems(items):
    if not host.runs_on_gpu():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="no CUDA device here"))


@pytest.fixture
def assay():
    """Run the command as a user does: `assay("check", "gelu/torch", cwd=folder)`."""

    def run(*arguments, cwd=None, timeout=300, env=None):
        command = [sys.executable, "-m", "assay", *map(str, arguments)]
        return subprocess.run(
            command, cwd=cwd, timeout=timeout, capture_output=True, text=True,
            env=os.environ | {"COLUMNS": "200", "PYTHONPATH": str(ROOT / "src")} | (env or {}),
        )  # fmt: skip

    return run


@pytest.fixture
def write(tmp_path):
    """Write a file of the user's: `file = write("my.py", '''…''')`."""

    def put(name, text):
        file = tmp_path / name
        file.write_text(textwrap.dedent(text))
        return file

    return put


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
