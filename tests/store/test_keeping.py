"""A store that is locked, a disk that is full and a reader that went away cost no verdict: it is shown first, kept
afterwards, and what could not be kept is said. Exit code 3: nothing failed, but a file could not be written."""

import json
import os
import pty
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay.cli import keeping, screen, session
from assay.cli.terminal import wrapped
from assay.record import Record, Status
from assay.store import keeper, open_store
from command import assay

ROOT = Path(__file__).parents[2]
ONE = ("check", "gelu/torch", "--workload", "n=5,dtype=fp32")


def record(number=0):
    return Record("check", f"gelu/torch:k{number}", "n=5,dtype=fp32", Status.PASS, "", "r1")


def stored(where):
    with open_store(where) as store:
        return [r.kernel for r in store.records()]


@pytest.fixture
def place(tmp_path, monkeypatch):
    where = tmp_path / "records.sqlite"
    open_store(where).close()
    monkeypatch.setenv("ASSAY_STORE", str(where))
    return where


def locked(where):
    connection = sqlite3.connect(where, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    return connection


def test_a_record_is_shown_before_it_is_kept(place):
    order = []

    def records():
        yield record()
        order.append(("kept", stored(place)))

    screen.drain(records(), [], lambda r: order.append(("shown", stored(place))))
    assert order == [("shown", []), ("kept", ["gelu/torch:k0"])]


def test_what_a_locked_store_refuses_is_kept_once_it_is_free(place):
    holder = locked(place)

    def records():
        yield record(0)
        yield record(1)
        holder.execute("COMMIT")

    began = time.monotonic()
    kept, interrupted = screen.drain(records(), [])
    assert len(kept) == 2 and not interrupted
    assert stored(place) == ["gelu/torch:k0", "gelu/torch:k1"]
    assert time.monotonic() - began < 60, "a record waits for the store, the run does not"


def test_a_store_that_stays_locked_costs_no_verdict_and_is_said_once(place, capsys, monkeypatch):
    monkeypatch.setattr(keeper, "_LAST", 0.2)
    holder = locked(place)
    shown = []
    screen.drain(iter([record(0), record(1)]), [], lambda r: shown.append(r.kernel))
    holder.close()
    assert shown == ["gelu/torch:k0", "gelu/torch:k1"]
    said = capsys.readouterr().err
    assert said.count("assay:") == 1
    assert "2 records are not kept" in said and "database is locked" in said and "assay history --import" in said


def test_what_python_asks_for_is_kept_like_what_the_command_asks_for(place, monkeypatch):
    """`assay.check(…)` of a script or notebook stands in the history; `keep=False` and ASSAY_STORE=none turn it off."""
    import assay

    what = {"dtypes": "fp32", "workload": "n=4,dtype=fp32"}
    (record,) = assay.check("gelu/torch", **what)
    assert stored(place) == [record.kernel]
    (first, *_) = assay.inspect("gelu/cuda", dtypes="fp32")
    assert stored(place) == [record.kernel, first.kernel] and first.instructions
    list(assay.check("silu/torch", **what, keep=False))
    monkeypatch.setenv("ASSAY_STORE", "none")
    list(assay.check("silu/torch", **what))
    monkeypatch.setenv("ASSAY_STORE", str(place))
    assert stored(place) == [record.kernel, first.kernel]


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("postgresql://nobody@127.0.0.1:1/x", "refused"),
        ("mysql://x/y", "records are not kept in mysql"),
        ("/proc/no/records.sqlite", "No such file"),
        ("/dev/full/records.sqlite", "it is a file, not a folder"),
    ],
)
def test_a_store_that_cannot_be_had_costs_no_verdict(where, says, capsys, monkeypatch):
    monkeypatch.setenv("ASSAY_STORE", where)
    kept, _ = screen.drain(iter([record()]), [])
    said = capsys.readouterr().err
    assert len(kept) == 1
    assert "1 record is not kept" in said and says in said and "→" in said and "Traceback" not in said


def test_a_broken_record_does_not_keep_the_others_from_the_store(place, capsys):
    """The verdict stands; the store takes no record that could not be read back."""
    kept, _ = screen.drain(iter([record(0), Record("check", 5, "", Status.PASS, "")]), [])
    assert len(kept) == 2 and stored(place) == ["gelu/torch:k0"]
    assert "1 record is not kept" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("/dev/full", "No space left on device"),
        ("{}", "Is a directory"),
        ("/proc/nothing/out.json", "No such file"),
        ("{}/file/out.json", "Not a directory"),
    ],
)
def test_a_document_that_cannot_be_written_costs_no_verdict(out, says, tmp_path):
    (tmp_path / "file").write_text("")
    done = assay(*ONE, "--out", out.replace("{}", str(tmp_path)))
    assert done.code == 3
    assert "✓ pass" in done.out and "records:" not in done.out
    assert "the records could not be written to" in done.err and says in done.err and "→" in done.err


def test_a_failure_is_told_before_what_could_not_be_kept(tmp_path):
    file = tmp_path / "f.py"
    file.write_text('from assay import kernel\n@kernel("gelu")\ndef k(x, *, out):\n    out.copy_(x)\n')
    done = assay("check", file, "--workload", "n=5,dtype=fp32", "--out", "/dev/full")
    assert done.code == 1 and "✗ fail" in done.out and "No space left" in done.err


def test_a_full_disk_leaves_the_document_that_was_there(tmp_path):
    out = tmp_path / "out.json"
    out.write_text("before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError):
            keeping.put(out, "x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert out.read_text() == "before" and [p.name for p in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="a small disk needs root")
def test_a_disk_that_is_really_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("this machine mounts nothing")
    try:
        (disk / "data").write_bytes(bytes(4096))
        done = assay(*ONE, "--out", disk / "out.json")
        assert done.code == 3 and "✓ pass" in done.out and "No space left on device" in done.err
        assert [p.name for p in disk.iterdir()] == ["data"]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_missing_folder_is_made_and_a_link_is_followed(tmp_path):
    keeping.put(tmp_path / "a" / "b" / "out.json", "one")
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "a" / "b" / "out.json")
    keeping.put(link, "two")
    assert link.is_symlink() and (tmp_path / "a" / "b" / "out.json").read_text() == "two"


def test_what_is_saved_on_the_way_is_tried_in_silence(tmp_path, capsys):
    session.begin()
    with keeping.quietly():
        assert not screen.write_document([record()], Path("/dev/full"))
    assert not session.unkept and not capsys.readouterr().err
    assert not screen.write_document([record()], Path("/dev/full"))
    assert session.unkept == ["/dev/full"]
    session.begin()


def shell(line, cwd, **environment):
    """A real process, its output where the shell sends it."""
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src"), "ASSAY": f"{sys.executable} -m assay"} | environment
    return subprocess.run(["bash", "-c", line], cwd=cwd, env=variables, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("$ASSAY list gelu > /dev/full", 3, "what was to be shown could not be written: No space left on device"),
        ("$ASSAY list --json > /dev/full", 3, "No space left on device"),
        ("$ASSAY list --json | head -c 10 > /dev/null; exit ${PIPESTATUS[0]}", 0, ""),
        ("$ASSAY list gelu nothing.py | true; exit ${PIPESTATUS[0]}", 2, "no file called nothing.py"),
        ("$ASSAY list gelu >&-", 0, ""),
    ],
)
def test_output_that_goes_nowhere_is_no_traceback(line, code, says, tmp_path):
    done = shell(line, tmp_path)
    assert done.returncode == code, done.stderr
    assert says in done.stderr and "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@pytest.mark.slow
def test_a_verdict_survives_a_reader_that_went_away(tmp_path):
    """What was asked for is written and kept, though nobody reads the lines."""
    line = "$ASSAY check gelu/torch nothing.py --workload n=5,dtype=fp32 --out out.json | true; exit ${PIPESTATUS[0]}"
    done = shell(line, tmp_path, ASSAY_STORE=str(tmp_path / "s.sqlite"))
    assert done.returncode == 2 and "no file called nothing.py" in done.stderr and "Traceback" not in done.stderr
    document = json.loads((tmp_path / "out.json").read_text())
    assert [r["status"] for r in document["records"]] == ["pass"]
    assert document["refused"][0]["what"] == "no file called nothing.py"
    assert stored(tmp_path / "s.sqlite") == ["gelu/torch"]


@pytest.mark.slow
def test_a_locale_without_unicode_shows_and_reads_everything(tmp_path):
    """The user's file is UTF-8 whatever the locale says, and no mark needs more than ASCII."""
    text = '# größe\nfrom assay import kernel\n@kernel("gelu")\ndef k(x, *, out):\n    out.copy_(x)  # ×\n'
    (tmp_path / "größe.py").write_text(text)
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = shell("$ASSAY check größe.py gelo --workload n=5,dtype=fp32 --out o.json", tmp_path, **plain)
    assert done.returncode == 1, done.stderr
    assert "x fail" in done.stdout and "-> did you mean gelu" in done.stderr
    assert "Traceback" not in done.stderr and (done.stdout + done.stderr).isascii()
    assert json.loads((tmp_path / "o.json").read_text())["records"][0]["kernel"] == "gelu/torch:k"


def test_no_command_leaves_anything_in_the_users_folder(tmp_path):
    """Hypothesis, which draws workloads, would keep a cache there."""
    for command in (("check", "gelu/torch", "--dtype", "fp32", "--workloads", "9"), ("list", "gelu"), ("history",)):
        done = assay(*command, cwd=tmp_path)
        assert done.code == 0, done.err
    assert list(tmp_path.iterdir()) == []


def wide(text, columns):
    """Lines that are longer, unless a single word is."""
    return [line for line in text.splitlines() if len(line.rstrip()) > columns and " " in line.strip()]


@pytest.mark.parametrize(
    "command",
    [("list",), ("list", "gelu", "conv2d"), ("doctor",), ("selftest", "does_nothing", "illegal_access")],
    ids=" ".join,
)
def test_forty_columns_are_respected_and_no_word_is_cut(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    done = assay(*command)
    assert not wide(done.out, 40) and "…" not in done.out
    monkeypatch.setenv("COLUMNS", "400")
    long, narrow = ({w.strip(":;,") for w in text.split()} for text in (assay(*command).out, done.out))
    assert {w for w in long if len(w) > 12} <= narrow


def test_a_failure_on_forty_columns_keeps_its_command_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    file = tmp_path / "a_rather_long_name_for_a_file_of_kernels.py"
    file.write_text('from assay import kernel\n@kernel("gelu")\ndef k(x, *, out):\n    out.copy_(x)\n')
    done = assay("check", file, "gelu/torch", "--workload", "n=5,dtype=fp32", "--out", tmp_path / "o.json")
    replay = f"  replay  assay check {file} --workload n=5,dtype=fp32"
    assert replay in done.out.splitlines()
    assert f"{file}:3" in done.out.split() and str(tmp_path / "o.json") in done.out.split()
    assert wide(done.out, 40) == [replay]


def test_a_real_terminal_of_forty_columns(tmp_path):
    """Also what is said on stderr, and without COLUMNS."""
    command = "stty cols 40; $ASSAY list gelu/torch nothing_like_it.py; exit"
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src"), "ASSAY": f"{sys.executable} -m assay", "TERM": "xterm"}
    variables.pop("COLUMNS", None)
    pid, handle = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execvpe("bash", ["bash", "-c", command], variables)
    text = b""
    while True:
        try:
            data = os.read(handle, 4096)
        except OSError:
            break
        if not data:
            break
        text += data
    os.waitpid(pid, 0)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.decode()).replace("\r", "")
    assert "no file called" in " ".join(plain.split())
    assert not wide(plain, 40), plain


def test_wrapping_loses_nothing():
    text = "[bold]one[/]  two\n  indented and a_word_that_is_far_too_long_for_it end"
    assert wrapped(text, 12).plain.splitlines() == [
        "one  two",
        "  indented",
        "and",
        "a_word_that_is_far_too_long_for_it",
        "end",
    ]
