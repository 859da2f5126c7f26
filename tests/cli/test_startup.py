"""Surroundings in which a check may be started: each works, or says in a sentence what is missing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """
import torch
from assay import kernel

@kernel("gelu", backend="torch")
def mine(x, *, out):
    out.copy_(torch.nn.functional.gelu(x))
"""
SHADOWS = ("torch", "json", "socket", "struct", "select", "psutil", "numpy", "typing", "assay", "secrets", "pydantic")
COMMAND = [sys.executable, "-c", "import sys; sys.path.pop(0); from assay.cli import main; main()"]
"""As the installed command does it: the folder one stands in is on nobody's path."""


def check(folder, before="", environment=(), where=None, stdin=None):
    """Run the command behind some lines of shell; the records, and all that was said."""
    file, out = folder / "mine.py", folder / "records.json"
    file.write_text(KERNEL)
    wanted = {k: v for k, v in (os.environ | {"ASSAY_STORE": "none"} | dict(environment)).items() if v is not None}
    told = ["check", str(file), "--dtype", "fp32", "--workloads", "2", "--out", str(out)]
    done = subprocess.run(
        ["bash", "-c", f'{before}\n"$@"', "-", *COMMAND, *told],
        env=wanted,
        cwd=where or folder,
        text=True,
        capture_output=True,
        timeout=600,
        stdin=stdin,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    return (json.loads(out.read_text())["records"] if out.exists() else []), said


def passed(records, said):
    return [r["status"] for r in records] == ["pass"] or pytest.fail(f"{records}\n{said}")


def test_a_folder_deleted_under_ones_feet_is_a_sentence(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    records, said = check(tmp_path, 'rmdir "$PWD"', where=gone)
    assert not records and "has been deleted" in said and "cd into one that exists" in said


@pytest.mark.slow
def test_workers_do_not_need_the_folder_they_were_started_in(tmp_path):
    code = "import os; from assay.worker import Pool; os.rmdir(os.getcwd())\n"
    code += "with Pool() as pool: print(pool.worker('torch', 'native').pid > 0)"
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run([sys.executable, "-c", code], cwd=gone, capture_output=True, text=True, timeout=600)
    assert done.stdout == "True\n", done.stderr


def mounts(what, inside):
    """A line of shell that goes on in a place of its own, with nothing at `what`."""
    return f'exec unshare --map-root-user --mount bash -c \'{inside.format(what=what)} && exec "$@"\' - "$@"'


MAY_MOUNT = (
    shutil.which("unshare")
    and subprocess.run(
        ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True
    ).returncode
    == 0
)


@pytest.mark.slow
def test_poor_surroundings_all_at_once_change_nothing(tmp_path):
    """Modules of the same names beside the kernel stand in for none; the standard handles are closed; there is no
    Unicode, no home, nowhere to write but the document, and no folder for shared memory, if mounts are allowed."""
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('the wrong module was imported')\n")
    nowhere = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": None, "XDG_DATA_HOME": None, "TMPDIR": "/no/such/folder"}
    before = "exec <&- >&- 2>&-"
    if MAY_MOUNT:
        nothing = tmp_path / "nothing"
        nothing.mkdir()
        assert Path("/dev/shm").exists()
        inside = f"mount --bind {nothing} {{what}} && mount -o remount,ro,bind {{what}}"
        before += "\n" + mounts("/dev/shm", inside)
    assert passed(*check(tmp_path, before, nowhere | {"LC_ALL": "C", "LANG": None}))


@pytest.mark.whole
@pytest.mark.parametrize("handles", ["<&-", ">&-"], ids=["stdin", "stdout"])
def test_one_closed_handle_and_no_home_change_nothing(tmp_path, handles):
    assert passed(*check(tmp_path, f"exec {handles}", {"HOME": None}))


@pytest.mark.slow
@pytest.mark.skipif(not MAY_MOUNT, reason="this user may not mount anything")
def test_a_full_disk_for_temporary_files_is_a_sentence(tmp_path):
    """With no home either."""
    full = tmp_path / "full"
    full.mkdir()
    inside = "mount -t tmpfs -o size=4k,nr_inodes=1 none {what}"
    records, said = check(tmp_path, mounts(full, inside), {"TMPDIR": str(full), "HOME": None})
    # Python looks for another folder of its own accord; either it finds one, or the record says what is missing.
    assert [r["status"] for r in records] == ["pass"] or "temporary" in records[0]["reason"], said
