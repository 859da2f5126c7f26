"""The store, on a real SQLite file and a real PostgreSQL server: what was added is there, whatever happens."""

import csv
import json
import math
import os
import pwd
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from assay.cli.history import history
from assay.errors import UsageError
from assay.record import Record, Status, read
from assay.report.export import KINDS, export
from assay.store import open_store, when
from assay.store.row import to_row

ROOT = Path(__file__).parents[2]


def binaries():
    """Where Debian, or whoever, keeps PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: float(p.parts[-3]))
    if found:
        return found[-1].parent
    told = shutil.which("initdb")
    return Path(told).parent if told else None


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL of our own, on a free port, with a password."""
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="assay-postgres-"))
    as_whom = {}
    if os.geteuid() == 0:  # the server refuses to be root
        names = [u.pw_name for u in pwd.getpwall()]
        user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_whom = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    (folder / "password").write_text("open:sesame")
    (folder / "password").chmod(0o644)
    made = subprocess.run(
        [
            programs / "initdb",
            "-D",
            folder / "data",
            "-U",
            "assay",
            "--auth=scram-sha-256",
            f"--pwfile={folder / 'password'}",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        **as_whom,
    )
    assert made.returncode == 0, made.stderr
    log = (folder / "log").open("w")
    for _ in range(3):  # another process may take the port between our look and the server's
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [programs / "postgres", "-D", folder / "data", "-h", "127.0.0.1", "-p", str(port), "-k", folder]
        command += ["-c", "fsync=off"]  # nobody pulls the plug on this one
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **as_whom)
        ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        while process.poll() is None and subprocess.run(ready).returncode:
            time.sleep(0.05)
        if process.poll() is None:
            break
    assert process.poll() is None, (folder / "log").read_text()
    yield f"postgresql://assay:open%3Asesame@127.0.0.1:{port}/postgres"
    process.send_signal(signal.SIGQUIT)  # at once: all of it is thrown away
    process.wait(timeout=30)
    log.close()
    shutil.rmtree(folder)


NUMBER = count()


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    """A place with nothing in it."""
    return fresh(request, request.param, tmp_path)


def fresh(request, kind, tmp_path):
    """In PostgreSQL a schema, not a database: those take a second each."""
    name = f"place_{next(NUMBER)}"
    if kind == "sqlite":
        return str(tmp_path / name / "records.sqlite")
    import psycopg

    url = request.getfixturevalue("server")
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{url}?options=-csearch_path%3D{name}"


@pytest.fixture
def store(where):
    with open_store(where) as opened:
        yield opened


def record(kernel="gelu/triton", **more):
    about = {"time": "2026-11-15T05:00:00Z", "commit": "abc1234", "gpu": "NVIDIA H200", "cpu": "Xeon"}
    base = {"verb": "bench", "workload": "n=8,dtype=bf16", "status": Status.PASS, "reason": "", "run": "r1"}
    return Record(**base | {"kernel": kernel, "provenance": about | more.pop("about", {})} | more)


BENCH = record(
    reason="12.3 µs, 1.8× gelu/torch",
    median=12.3e-6,
    interval=(12.2e-6, 12.5e-6),
    samples=[[12.1e-6, 12.3e-6], [12.4e-6]],
    seconds=3.5,
    evidence={
        "device": "cuda",
        "baseline": "gelu/torch",
        "speedup": {"median": 1.8, "interval": [1.79, 1.81]},
        "bytes": 1 << 40,
        "gbps": 4100.5,
        "hot": {"median": 8e-6, "interval": [7e-6, 9e-6], "samples": [[8e-6], [7e-6, 9e-6]]},
        "roofline": {"bound": "memory", "seconds": 1.1e-5, "share": 0.9, "model": "h200"},
        "launches": 1,
        "clocks": {"sm_mhz": 1980.0, "throttle": [], "celsius": 41, "watts": 310},
    },
)


def same(one, other):
    """Equal to the last bit, nan and -0.0 included; the order of names in a dict means nothing."""

    def text(r):
        return json.dumps(asdict(r), sort_keys=True), r.status.__class__, r.interval.__class__

    return text(one) == text(other)


# --- what goes in comes out


def test_a_record_comes_back_as_it_went_in_and_once(where):
    with open_store(where) as store:
        keys = [store.add(BENCH), store.add(record("gelu/cuda")), store.add(BENCH)]
        assert keys[0] == keys[2] != keys[1]
        found = list(store.records())
    assert [r.kernel for r in found] == ["gelu/triton", "gelu/cuda"] and same(found[0], BENCH)
    with open_store(where, create=False) as again:
        assert [r.kernel for r in again.records()] == ["gelu/triton", "gelu/cuda"]


TEXT = st.text(max_size=30)
NUMBERS = st.floats() | st.integers(-(1 << 70), 1 << 70)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
LONG = st.integers(0, 9).map(lambda seed: "".join(map(chr, random.Random(seed).choices(range(0x4E00, 0x9FFF), k=3000))))
"""Longer than PostgreSQL can index, however it packs them."""
RECORDS = st.builds(
    Record,
    verb=TEXT,
    kernel=TEXT | LONG,
    workload=TEXT | LONG,
    status=st.sampled_from(Status),
    reason=TEXT,
    run=TEXT,
    evidence=st.dictionaries(TEXT, JSON, max_size=4),
    replay=TEXT,
    source=st.dictionaries(TEXT, JSON, max_size=2),
    artifacts=st.lists(st.dictionaries(TEXT, JSON, max_size=2), max_size=2),
    provenance=st.dictionaries(TEXT | st.sampled_from(["time", "gpu", "cpu", "commit"]), JSON, max_size=5),
    seconds=st.floats(),
    median=st.none() | st.floats(),
    interval=st.none() | st.tuples(st.floats(), st.floats()),
    samples=st.none() | st.lists(st.lists(st.floats(), max_size=4), max_size=4),
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(written=RECORDS)
def test_any_record_survives_both_its_columns_and_its_text(store, written):
    """Unicode, NUL, nan, inf, huge integers, names longer than an index allows: found by its own fields, unchanged."""
    store.add(written)
    store.add(written)
    wanted = {"run": written.run, "verb": written.verb, "workload": written.workload, "status": written.status}
    assert len([r for r in store.records(**wanted) if same(r, written)]) == 1


def test_a_record_with_an_infinite_figure_hides_no_other(where):
    """A wrong kernel where PyTorch is exact is infinitely worse; JSON has no such number."""
    with open_store(where) as store:
        store.add(record(kernel="transpose/torch", evidence={"ratio": float("inf"), "least": float("-inf")}))
        store.add(record(kernel="gelu/torch"))
        assert {r.kernel for r in store.records(latest=True)} == {"transpose/torch", "gelu/torch"}


def test_what_is_no_text_or_no_record_is_mended_or_refused(where, tmp_path):
    with open_store(where) as store:
        store.add(record(reason="half a pair: \ud800, whole: \U0001f600", evidence={"path": Path("x")}, seconds=1))
        (kept,) = store.records()
        assert kept.reason == "half a pair: �, whole: \U0001f600" and kept.evidence == {"path": "x"}
        with pytest.raises(ValueError, match="status"):
            store.add(record(status="splendid"))
        export(store.records(), tmp_path / "out.json")
        assert store.import_document(tmp_path / "out.json") == (0, 1)


# --- questions


def test_records_are_found_by_what_they_are(where):
    other = {"cpu": "Xeon", "gpu": None, "time": "2026-11-16T05:00:00Z"}
    all_of_it = [
        record("gelu/triton"),
        record("gelu/cuda:inline_ptx", status=Status.FAIL),
        record("layernorm/triton", run="r2", workload="rows=1,cols=2,dtype=fp32", about=other),
        record("Gelu_tanh/njit", run="r2", verb="check", evidence={"device": "cpu"}),
        record("machine/dram.copy", run="r3", verb="machine", workload="bytes=8"),
    ]
    with open_store(where) as store:
        for r in all_of_it:
            store.add(r)

        def kernels(**filters):
            return [r.kernel for r in store.records(**filters)]

        everything = kernels()
        assert everything == [r.kernel for r in [*all_of_it[:2], *all_of_it[3:], all_of_it[2]]], (
            "by time, then as added"
        )
        assert kernels(kernel="gelu/*") == kernels(kernel="gelu") == kernels(op="gelu") == everything[:2]
        assert kernels(kernel="*/triton") == ["gelu/triton", "layernorm/triton"]
        assert kernels(kernel="gelu/c[ou]da:*") == ["gelu/cuda:inline_ptx"]
        assert kernels(kernel="g%") == kernels(kernel="gelu_tanh/njit") == [], "patterns are not SQL's, and see case"
        assert kernels(run="r2") == ["Gelu_tanh/njit", "layernorm/triton"]
        assert kernels(verb="machine") == kernels(workload="bytes=8") == ["machine/dram.copy"]
        assert kernels(status="fail") == ["gelu/cuda:inline_ptx"]
        assert kernels(device="Xeon") == ["Gelu_tanh/njit", "layernorm/triton"]
        assert kernels(since="2026-11-15T23:00") == ["layernorm/triton"]
        assert kernels(since=datetime(2026, 11, 16, 6, tzinfo=UTC)) == []
        assert kernels(limit=2) == everything[-2:]
        with pytest.raises(UsageError, match="no status"):
            kernels(status="good")


def test_latest_is_the_newest_of_each_verb_kernel_workload_and_device(where):
    def at(hour, **more):
        return record(run=f"r{hour}", about={"time": f"2026-11-15T{hour:02}:00:00Z"}, **more)

    old = at(1, reason="old")
    news = [at(3, status=Status.FAIL), at(2, workload="n=9,dtype=bf16"), at(2, evidence={"device": "cpu"})]
    with open_store(where) as store:
        for r in (news[0], old, *news[1:]):
            store.add(r)
        assert {r.run for r in store.records(latest=True, status="pass")} == {"r2"}
        assert sorted(r.run for r in store.records(latest=True)) == ["r2", "r2", "r3"]
        assert [r.reason for r in store.records(latest=True, run="r1")] == ["old"]
        assert [r.run for r in store.records(latest=True, limit=1)] == ["r3"]


def test_runs_are_summed_up_newest_first_and_named_by_a_beginning(where):
    late = {"time": "2026-11-15T07:00:00Z"}
    with open_store(where) as store:
        assert store.runs() == []
        with pytest.raises(UsageError, match="no run 'last'"):
            store.run("last")
        store.add(record(run="20261115-07", about=late))
        store.add(record("gelu/cuda", run="20261115-05", status=Status.FAIL))
        store.add(
            record("gelu/njit", run="20261115-05", evidence={"device": "cpu"}, about={"time": "2026-11-15T05:09:00Z"})
        )
        newest, oldest = store.runs()
        assert (newest.id, newest.counts, newest.device) == ("20261115-07", {"pass": 1}, "NVIDIA H200")
        assert (oldest.first, oldest.last) == ("2026-11-15T05:00:00Z", "2026-11-15T05:09:00Z")
        assert (oldest.verbs, oldest.commit, oldest.counts) == (("bench",), "abc1234", {"pass": 1, "fail": 1})
        assert oldest.devices == ("NVIDIA H200", "Xeon")
        assert [r.id for r in store.runs(status="fail")] == ["20261115-05"]
        assert [r.counts for r in store.runs(kernel="gelu/njit")] == [{"pass": 1}]
        assert store.run("last") == "20261115-07" and store.run("20261115-05") == store.run("20261115-05"[:-1] + "5")
        with pytest.raises(UsageError, match="begins 2 runs"):
            store.run("2026")


@given(ago=st.integers(0, 10**12), unit=st.sampled_from(["s", "min", "h", "d", "w"]), moment=st.datetimes())
def test_moments_sort_as_text_and_go_back_any_length(ago, unit, moment):
    assert when.since(f"{ago}{unit}") <= when.now()
    assert when.since(moment.isoformat()) == when.stamp(moment) <= when.stamp(max(moment, datetime(2026, 1, 1)))
    if moment.year > 1:
        assert when.since((moment - timedelta(hours=2)).isoformat() + "-02:00") == when.stamp(moment)


@pytest.mark.parametrize("text", ["yesterday", "", "3", "7 fortnights", "2026-13-01", "-1d"])
def test_what_is_no_moment_is_said(text):
    with pytest.raises(UsageError, match="is not a time"):
        when.since(text)


# --- whatever happens

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
    assert [process.wait(timeout=10) for process in pair] == [0, 0]


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


# --- what is not a store


def set_version(where, version):
    if "://" in where:
        import psycopg

        with psycopg.connect(where) as connection:
            connection.execute(f"UPDATE assay_store SET version = {version}")
    else:
        with sqlite3.connect(where) as connection:
            connection.execute(f"UPDATE assay_store SET version = {version}")


@pytest.mark.parametrize(("version", "fix"), [(2, "pip install -U"), (0, "--out all.json")])
def test_a_store_of_another_version_is_refused_with_what_to_do(where, version, fix):
    open_store(where).close()
    set_version(where, version)
    with pytest.raises(UsageError, match=f"version {version}") as refused:
        open_store(where)
    assert fix in refused.value.fix and "sesame" not in str(refused.value)


def test_looking_does_not_create(where):
    with pytest.raises(UsageError, match="no store at") as refused:
        open_store(where, create=False)
    assert "sesame" not in str(refused.value)
    assert "://" in where or not Path(where).exists()


def test_what_is_no_store_is_said(tmp_path, server, monkeypatch):
    wrong = {
        "file": tmp_path / "notes.txt",
        "folder": tmp_path,
        "kind": "mysql://host/database",
        "memory": "sqlite://",
        "nobody": "postgresql://assay:sesame@127.0.0.1:1/none",
        "password": server.replace("sesame", "sesam"),
        "url": "postgresql://assay:sesame@host:port/x",
    }
    wrong["file"].write_text("not a database " * 100)
    for name, place in wrong.items():
        with pytest.raises(UsageError) as refused:
            open_store(place)
        assert refused.value.fix and "sesam" not in str(refused.value), name
    with sqlite3.connect(tmp_path / "theirs.sqlite") as theirs:
        theirs.execute("CREATE TABLE records (x)")
    with pytest.raises(UsageError, match="not Assay's"):
        open_store(tmp_path / "theirs.sqlite")


def test_the_place_is_the_argument_or_the_environment_or_the_users_own(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("ASSAY_STORE", raising=False)
    assert open_store().where == str(tmp_path / "data" / "assay" / "records.sqlite")
    monkeypatch.setenv("ASSAY_STORE", str(tmp_path / "env ?#%.sqlite"))
    assert open_store().where == str(tmp_path / "env ?#%.sqlite") and (tmp_path / "env ?#%.sqlite").exists()
    assert open_store(tmp_path / "given").where == str(tmp_path / "given")


def test_sqlalchemy_waits_until_a_store_is_opened():
    script = (
        "import sys, assay.store, assay.cli.history\nprint([m for m in ('sqlalchemy', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- documents in, files out


def test_a_document_is_imported_once_and_all_or_nothing(where, tmp_path):
    document = tmp_path / "run.json"
    export([BENCH, record("gelu/cuda", seconds=1)], document, verb="bench", run="r1")
    with open_store(where) as store:
        store.add(BENCH)
        assert store.import_document(document) == (1, 1)
        assert store.import_document(document) == (0, 2)
        reordered = json.loads(document.read_text())
        reordered["records"] = [dict(reversed(r.items())) for r in reversed(reordered["records"])]
        reordered["records"][0]["a field of tomorrow"] = ""
        document.write_text(json.dumps(reordered))
        assert store.import_document(document) == (0, 2)
        for text in (
            "{",
            "[]",
            '{"schema": 1}',
            '{"schema": 3, "records": []}',
            '{"schema": 1, "records": [{"verb": 1}]}',
        ):
            document.write_text(text)
            with pytest.raises(UsageError):
                store.import_document(document)
        with pytest.raises(UsageError, match="No such file"):
            store.import_document(tmp_path / "none.json")
        assert len(list(store.records())) == 2


def test_committed_records_go_in_and_come_out_the_same(where, tmp_path):
    files = [f for f in sorted((ROOT / "results").glob("*/*.json")) if '"records"' in f.read_text()]
    if not files:
        pytest.skip("no records committed yet")
    given = {to_row(r)["key"]: r for f in files for r in read(f)}
    with open_store(where) as store:
        assert sum(store.import_document(f)[0] for f in files) == len(given)
        out = {to_row(r)["key"]: r for r in store.records()}
        assert out.keys() == given.keys() and all(same(out[k], given[k]) for k in given)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(written=st.lists(RECORDS, max_size=3))
def test_exports_read_back(tmp_path, written):
    from pyarrow import parquet

    written = [*written, BENCH]
    for suffix in ("json", "csv", "parquet"):
        assert export(written, tmp_path / f"out.{suffix}") == len(written)
    assert all(map(same, read(tmp_path / "out.json"), written))
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert len(rows) == len(table) == len(written) and list(rows[0]) == list(KINDS)
    for r, row, cell in zip(written, rows, table, strict=True):
        assert row["kernel"] == cell["kernel"] == r.kernel and row["reason"] == cell["reason"] == r.reason
        assert row["median_s"] == ("" if r.median is None else str(r.median)) and str(cell["median_s"]) == str(r.median)
        assert repr(cell["samples_s"]) == repr(r.samples)
        assert repr(json.loads(cell["evidence"])) == repr(r.evidence)
    last, cell = rows[-1], table[-1]
    assert (
        float(last["low_s"]) == cell["low_s"] == 12.2e-6 and float(last["speedup_high"]) == cell["speedup_high"] == 1.81
    )
    assert int(last["moved_bytes"]) == cell["moved_bytes"] == 1 << 40 and cell["hot_samples_s"] == [
        [8e-6],
        [7e-6, 9e-6],
    ]
    assert (last["op"], last["backend"], last["dtype"], last["device"]) == ("gelu", "triton", "bf16", "NVIDIA H200")
    assert cell["temperature_celsius"] == 41 and cell["compile_s"] is None and last["compile_s"] == ""
    assert math.isclose(cell["bandwidth_gb_per_s"], 4100.5)


def test_no_records_are_files_too(tmp_path):
    from pyarrow import parquet

    for suffix in ("json", "csv", "parquet"):
        assert export([], tmp_path / f"none.{suffix}") == 0
    assert parquet.read_table(tmp_path / "none.parquet").num_rows == 0 and read(tmp_path / "none.json") == []


def test_a_missing_pyarrow_or_an_unknown_suffix_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError) as refused:
        export([BENCH], tmp_path / "out.parquet")
    assert refused.value.fix == "pip install pyarrow" and not (tmp_path / "out.parquet").exists()
    with pytest.raises(UsageError, match="xlsx"):
        export([BENCH], tmp_path / "out.xlsx")


# --- the command


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    app = typer.Typer()
    app.command()(history)

    def call(*arguments):
        done = CliRunner().invoke(app, [str(a) for a in arguments])
        if isinstance(done.exception, UsageError):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    return call


def test_history_lists_runs_shows_one_takes_in_and_writes_out(where, run, tmp_path):
    document, store = tmp_path / "in.json", ("--store", where)
    export([BENCH, record("gelu/cuda", run="r2", status=Status.FAIL, reason="[wrong]\nin detail")], document)
    with pytest.raises(UsageError, match="no store"):
        run(*store)
    assert "2 new, 0 already there" in run(*store, "--import", document)
    assert json.loads(run(*store, "--import", document, "--json"))["imported"] == {"new": 0, "known": 2}
    text = run(*store)
    assert text.index("r2") < text.index("r1") and "✓1" in text and "✗1" in text and "NVIDIA H200" in text
    assert "sesame" not in text
    assert [r["id"] for r in json.loads(run(*store, "--json"))["runs"]] == ["r2", "r1"]
    assert "r2" not in run(*store, "--status", "pass") and "r1" not in run(*store, "--limit", "1")
    text = run("r1", *store)
    assert "gelu/triton" in text and "12.30 µs" in text and "±1.2 %" in text and "1.80×" in text
    text = run("last", *store)
    assert "[wrong]" in text and "detail" not in text and "gelu/triton" not in text
    shown = json.loads(run("last", *store, "--json"))
    assert shown["run"] == "r2" and [r["kernel"] for r in shown["records"]] == ["gelu/cuda"]
    assert json.loads(run("r1", *store, "--json", "--since", "1min"))["records"] == []
    assert "no such record" in run("r1", *store, "--kernel", "softmax")
    assert "2 records" in run(*store, "--out", tmp_path / "all.json")
    assert [r.kernel for r in read(tmp_path / "all.json")] == ["gelu/triton", "gelu/cuda"]
    assert "1 records" in run("r1", *store, "--out", tmp_path / "one.csv")
    with pytest.raises(UsageError, match="stands alone"):
        run("r1", *store, "--import", document)
    with pytest.raises(UsageError, match="no run"):
        run("r3", *store)


def test_history_shows_the_tunables_of_a_record(where, run, tmp_path):
    tuned = record(evidence={"parameters": {"BLOCK": 2048, "num_warps": 8}})
    export([tuned, record("mnist-cnn", evidence={"parameters": 207178})], tmp_path / "in.json")
    run("--store", where, "--import", tmp_path / "in.json")
    text = run("last", "--store", where)
    assert "BLOCK=2048 num_warps=8" in text and "207178" not in text


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
