"""The store, on a real SQLite file and a real PostgreSQL server: what was added is there, whatever happens."""

import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.record import Status
from assay.report.export import export
from assay.store import open_store, when
from storing import BENCH, RECORDS, record, same

ROOT = Path(__file__).parents[2]


# --- what goes in comes out


def test_a_record_comes_back_as_it_went_in_and_once(where):
    with open_store(where) as store:
        keys = [store.add(BENCH), store.add(record("gelu/cuda")), store.add(BENCH)]
        assert keys[0] == keys[2] != keys[1]
        found = list(store.records())
    assert [r.kernel for r in found] == ["gelu/triton", "gelu/cuda"] and same(found[0], BENCH)
    with open_store(where, create=False) as again:
        assert [r.kernel for r in again.records()] == ["gelu/triton", "gelu/cuda"]


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


def test_what_is_no_text_or_no_record_is_fixed_or_refused(where, tmp_path):
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
        with pytest.raises(UsageError, match="no verb 'run' has records"):  # `assay run` yields check's and bench's
            store.run("last", verb="run")


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
