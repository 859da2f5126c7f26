"""`assay history`, on both kinds of stores."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from assay.cli.history import history
from assay.errors import UsageError
from assay.record import Status, read
from assay.report.export import export
from storing import BENCH, record

ROOT = Path(__file__).parents[2]


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
