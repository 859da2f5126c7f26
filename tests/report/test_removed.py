"""Kernels that were renamed or deleted: their last records are history, and not counted."""

import os
import shutil
import subprocess

import pytest

from assay.record import Record, Status
from assay.report import rows
from assay.report.page import render
from assay.report.removed import separated
from assay.store import open_store
from command import assay as run

KERNEL = """
import torch
from assay import kernel

@kernel("relu", backend="torch")
def {name}(x, *, out):
    out.copy_(torch.relu(x){wrong})
"""


def checked(kernel, file="", status=Status.FAIL, verb="check"):
    return Record(verb, kernel, "dtype=fp32", status, "wrong", "r1", source={"file": file})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(KERNEL.format(name="old", wrong=" / 2"))
    return tmp_path


def removed(*records):
    kept, gone = separated(records)
    assert len(kept) + len(gone) == len(records)
    return [(one.record.kernel, one.why) for one in gone]


def test_a_renamed_kernel_no_longer_fails_on_the_page(folder):
    store = ("--store", str(folder / "s.sqlite"))
    (folder / "mine.py").write_text(KERNEL.format(name="new", wrong=""))
    with open_store(store[1]) as opened:
        opened.add(checked("relu/torch:old", "mine.py"))
        opened.add(checked("relu/torch:new", "mine.py", Status.PASS))
    done = run("report", "--out", "page.html", *store)
    assert "1 record: 1 pass" in done.said and "not counted: 1 record of kernels" in done.said
    page = (folder / "page.html").read_text()
    assert "1 of 1 kernel passes." in page and 'id="failures"' not in page
    assert "No longer in the source" in page and "mine.py does not declare it any more" in page
    done = run("report", "--out", "page.html", "--run", "r1", *store)
    assert "2 records: 1 pass, 1 fail" in done.said and "not counted" not in done.said, "one run stands for itself"


def test_what_a_file_declares_and_what_follows_from_its_ops_is_in_the_source(folder):
    (folder / "op.py").write_text(
        "from assay import op\n\n@op(axes={}, inputs={}, outputs={})\ndef mine(x):\n    ...\n"
    )
    assert removed(checked("relu/torch:old", "mine.py"), checked("mine/torch", "op.py")) == []
    assert removed(checked("mine/inductor:max_autotune", "op.py"), checked("gelu/triton")) == []
    assert removed(checked("mine/triton", "op.py")) == [("mine/triton", "op.py does not declare it any more")]


def test_a_file_that_was_edited_since_is_read_again(folder):
    assert removed(checked("relu/torch:old", "mine.py")) == []
    (folder / "mine.py").write_text(KERNEL.format(name="new", wrong=""))
    assert removed(checked("relu/torch:old", "mine.py")) != []


def test_the_library_is_asked_for_its_own_kernels(folder):
    gone = checked("gelu/triton:gone", "assay/library/gelu/triton_gone.py")
    assert removed(gone, checked("gelu/triton", "assay/library/gelu/triton.py")) == [
        ("gelu/triton:gone", "the library does not have this kernel any more")
    ]


def test_where_nothing_can_be_told_a_record_counts(folder):
    (folder / "broken.py").write_text("def (")
    unknown = [
        checked("relu/torch:x", "elsewhere.py"),
        checked("relu/torch:x", "broken.py"),
        checked("relu/cuda:x", "x.cu"),
        checked("mnist-cnn", "mine.py", verb="model"),
        checked("missing_barrier", "mine.py", verb="selftest"),
    ]
    assert removed(*unknown) == []


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_a_deleted_file_is_known_from_the_repository(folder):
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    (folder / "deleted.py").write_text(KERNEL.format(name="old", wrong=""))
    for words in ("init -q", "add .", "commit -qm kernels", "rm -q deleted.py"):
        subprocess.run(["git", *words.split()], cwd=folder, env=os.environ | who, check=True)
    records = [checked("relu/torch:old", name) for name in ("mine.py", "deleted.py", "never.py")]
    assert removed(*records) == [("relu/torch:old", "deleted.py was deleted or renamed")]


def test_a_page_without_removed_kernels_does_not_mention_them():
    records = rows.latest([checked("gelu/triton")])
    assert 'id="removed"' not in render(records, title="a")
