"""Where a record comes from: the commit of the user's repository, and Assay's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import assay
from assay import provenance
from assay.record import LIBRARY

PACKAGE = Path(assay.__file__).parent
KERNEL = """
import torch
from assay import kernel

@kernel("relu", backend="torch")
def mine(x, *, out):
    out.copy_(torch.relu(x))
"""
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")


def git(folder, *words):
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    return subprocess.run(["git", *words], cwd=folder, env=os.environ | who, capture_output=True, text=True, check=True)


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "mine.py").write_text(KERNEL)
    git(tmp_path, "add", "mine.py")
    git(tmp_path, "commit", "-qm", "a kernel")
    return tmp_path


def head(folder):
    return git(folder, "rev-parse", "--short", "HEAD").stdout.strip()


def test_a_record_names_the_commit_of_the_users_repository_and_assays(repository):
    (record,) = assay.check(repository / "mine.py", dtypes="fp32", workloads=1, keep=False)
    assert record.source["commit"] == record.commit == head(repository)
    assert record.assay_commit == provenance.machine()["assay_commit"] != record.commit


def test_a_plus_marks_what_the_commit_does_not_hold(repository):
    file, other = repository / "mine.py", repository / "other.py"
    assert provenance.source_of(file)["commit"] == head(repository)
    other.write_text(KERNEL)
    assert provenance.source_of(other)["commit"] == head(repository) + "+", "not tracked"
    file.write_text(KERNEL + "# edited\n")
    assert provenance.source_of(file)["commit"] == head(repository) + "+", "edited in the same process"


def test_outside_of_a_repository_there_is_no_commit(tmp_path):
    (tmp_path / "mine.py").write_text(KERNEL)
    assert provenance.source_of(tmp_path / "mine.py")["commit"] == ""


def test_kernels_of_the_library_have_no_other_commit_than_assay():
    source = provenance.source_of(PACKAGE / "library" / "gelu" / "triton.py")
    assert source["file"].startswith(LIBRARY) and "commit" not in source


def test_an_assay_installed_inside_a_repository_does_not_take_its_commit(repository):
    """As in a virtual environment in the user's own project."""
    site = repository / ".venv" / "site-packages"
    shutil.copytree(PACKAGE, site / "assay", ignore=shutil.ignore_patterns("__pycache__", "library"))
    code = "from assay import provenance; print(repr(provenance.machine()['assay_commit']), provenance.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(site)},
        cwd=repository,
        text=True,
        capture_output=True,
        check=True,
    )
    assert done.stdout.split() == ["''", str(site / "assay" / "provenance.py")]
