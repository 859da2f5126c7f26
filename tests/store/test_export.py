"""Documents in, files out: what is imported and exported is what was written."""

import csv
import json
import math
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.record import read
from assay.report.export import KINDS, export
from assay.store import open_store
from assay.store.row import to_row
from storing import BENCH, RECORDS, record, same

ROOT = Path(__file__).parents[2]


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
    assert files
    if not str(where).startswith("sqlite"):  # the large ones show nothing about a server that the others do not
        files = [f for f in files if f.stat().st_size < 1 << 18]
    given = {to_row(r)["key"]: r for f in files for r in read(f)}
    with open_store(where) as store:
        assert sum(store.import_document(f)[0] for f in files) == len(given)
        out = {to_row(r)["key"]: r for r in store.records()}
        assert out.keys() == given.keys() and all(same(out[k], given[k]) for k in given)


@pytest.mark.slow
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
