"""Writers that are killed, that write at once, and that read meanwhile: what was added stays."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from assay.store import open_store
from assay.store.row import to_row
from storing import BENCH, fresh, record

ROOT = Path(__file__).parents[2]


WRITER = """
import sys
from assay.record import Record
from assay.store import open_store

name, places = sys.argv[1], sys.argv[2:]
for place in places:
    sys.stdin.readline()
    store = open_store(place)
    for i in range(100_000 if name == "forever" else 15):
        noise = [[float(i * j) for j in range(50)]]
        key = store.add(Record("bench", f"gelu/{name}", f"n={i},dtype=fp32", "pass", "", run=name, samples=noise))
        print(key, flush=True)
    print("done", flush=True)
"""


def writer(name, *places):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, name, *places],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )


def go(process):
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 25])
def test_sigkill_loses_at_most_the_record_in_flight(where, after):
    process = writer("forever", where)
    go(process)
    told = [process.stdout.readline() for _ in range(after)]
    time.sleep(after / 5000)  # not always at the same point of a transaction
    process.kill()
    rest = process.stdout.read()  # communicate() would leave out what readline() has in its buffer
    assert process.wait() == -signal.SIGKILL and "done" not in rest
    promised = [line.strip() for line in [*told, *rest.splitlines(keepends=True)] if line.endswith("\n")]
    assert len(promised) >= after
    with open_store(where) as store:
        kept = list(store.records())
        keys = {to_row(r)["key"] for r in kept}
        assert set(promised) <= keys and len(kept) <= len(promised) + 1
        store.add(BENCH)
        assert len(list(store.records())) == len(kept) + 1
    if "://" not in where:
        with sqlite3.connect(where) as raw:
            assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.slow
def test_two_processes_create_and_write_at_once(where, request, tmp_path):
    """Both make the same new store at the same moment, several times over; nothing is lost and nobody is refused."""
    kind = "postgresql" if "://" in where else "sqlite"
    places = [where, *(fresh(request, kind, tmp_path) for _ in range(4))]
    pair = [writer("one", *places), writer("two", *places)]
    for place in places:
        for process in pair:
            go(process)
        for process in pair:
            assert [process.stdout.readline() for _ in range(16)][-1] == "done\n"
        with open_store(place, create=False) as store:
            assert {r.id: r.counts for r in store.runs()} == {"one": {"pass": 15}, "two": {"pass": 15}}
    assert [process.wait(timeout=120) for process in pair] == [0, 0]


def test_a_file_without_its_log_gets_it_back_even_while_another_writes(tmp_path):
    """SQLite refuses at once here, whatever timeout it was given."""
    open_store(tmp_path / "records.sqlite").close()
    other = sqlite3.connect(tmp_path / "records.sqlite", isolation_level=None, check_same_thread=False)
    assert other.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    other.execute("BEGIN IMMEDIATE")
    ending = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    ending.start()
    with open_store(tmp_path / "records.sqlite") as store:
        store.add(BENCH)
        assert [r.kernel for r in store.records()] == [BENCH.kernel]
    ending.join()
    other.close()
    with sqlite3.connect(tmp_path / "records.sqlite") as fresh_look:
        assert fresh_look.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_reading_goes_on_while_others_write(where):
    with open_store(where) as store:
        for i in range(3):
            store.add(record(workload=f"n={i}"))
        seen = 0
        for found in store.records():
            store.add(replace(found, run="copy"))
            seen += 1
        assert seen == 3 and len(list(store.records())) == 6


@pytest.mark.slow
def test_a_verb_killed_in_mid_run_leaves_a_readable_store(tmp_path):
    """SIGKILL while `assay check` is at work: what it had shown before its latest record is there. A record is shown
    first and kept afterwards."""
    command = [sys.executable, "-m", "assay", "check", "gelu/torch", "silu/torch", "axpy/torch", "sum/torch"]
    process = subprocess.Popen(
        [*command, "--dtype", "fp32", "--workloads", "4", "-j", "1"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"ASSAY_DATA": str(tmp_path), "PYTHONUNBUFFERED": "1", "COLUMNS": "200"},
    )
    assert process.stdout is not None
    first, _ = process.stdout.readline(), process.stdout.readline()
    process.kill()
    process.wait()
    with open_store(tmp_path / "assay" / "records.sqlite", create=False) as store:
        kernels = [record.kernel for record in store.records()]
    assert first.split()[0] in kernels and len(kernels) < 4


def test_ctrl_c_while_a_connection_is_closed_prints_no_traceback(tmp_path):
    code = """
from assay.store.connection import connect
from sqlalchemy import make_url, text
import sys

def closed(connection):
    raise KeyboardInterrupt

engine = connect(make_url("sqlite:///" + sys.argv[1]), 1)
engine.dialect.do_close = closed
try:
    with engine.begin() as connection:
        connection.execute(text("select 1"))
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "store.sqlite"], capture_output=True, text=True)
    assert done.stdout == "interrupted\n" and done.stderr == ""
