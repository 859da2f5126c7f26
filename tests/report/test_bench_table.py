"""A time that no verdict supports is marked wherever it is shown, and its reason stands beside it."""

import csv
import io
from dataclasses import replace

import pytest
from rich.console import Console

from assay.cli import screen
from assay.record import Status
from assay.report import bench, rows
from assay.report.export import export
from assay.report.page import figures_of
from assay.report.table import Note, Table, to_html, to_markdown, to_rich
from made_records import synthetic_benches

REASON = "the interval, 1 to 3 µs, is as wide as its value: time it on a quiet machine"


@pytest.fixture
def records():
    """Seven kernels on one workload: Triton's time is inconclusive, CUDA's is wrong, all others pass."""
    changed = {
        "gelu/triton": {"status": Status.INCONCLUSIVE, "reason": REASON},
        "gelu/cuda": {"status": Status.FAIL, "reason": "floor: impossibly short"},
    }
    made = synthetic_benches(ops={"gelu": (1, 12)}, sizes=(10,), dtypes=("bf16",))
    return [replace(r, **changed.get(r.kernel, {})) for r in made]


def test_the_terminal_marks_an_inconclusive_time_and_gives_the_reason_below_the_table(records, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    screen.print_parts(bench.parts(records), screen.console())
    lines = capsys.readouterr().out.splitlines()
    first = {line.rpartition(" µs")[0].split("  ")[0] for line in lines[2:9]}
    assert {"? gelu/triton", "✗ gelu/cuda", "gelu/torch", "gelu/cupy"} < first
    assert lines[9] == f"? gelu/triton is inconclusive: {REASON}"


def test_the_page_and_markdown_draw_the_same_marks(records):
    drawn = list(bench.parts(records))
    (table,) = (part for part in drawn if isinstance(part, Table))
    assert Note(f"? gelu/triton is inconclusive: {REASON}") == drawn[1]
    names = [line.split(" | ")[0].removeprefix("| ") for line in to_markdown(table)[2:-1]]
    assert {"? gelu/triton", "✗ gelu/cuda", "gelu/torch"} < set(names)
    assert "<td>? gelu/triton</td>" in to_html(table) and "<td>gelu/torch</td>" in to_html(table)


def test_the_page_has_the_table_and_the_reason_below_the_chart_and_marks_the_bar(records):
    pytest.importorskip("altair")
    figures, _ = figures_of(records)
    (runtime,) = (f for f in figures if f["name"] == "runtime")
    assert "<td>? gelu/triton</td>" in runtime["tables"][0] and REASON in runtime["tables"][1]
    bars = {row["kernel"]: row for row in rows.benches(records)}
    assert bars["gelu/triton"]["Label"].endswith(" ?") and "inconclusive" in bars["gelu/triton"]["Notes"]
    assert not bars["gelu/torch"]["Label"].endswith("?")


def test_csv_has_status_and_reason_of_every_time(records, tmp_path):
    export(records, tmp_path / "x.csv")
    read = {r["kernel"]: r for r in csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text()))}
    assert (read["gelu/triton"]["status"], read["gelu/triton"]["reason"]) == ("inconclusive", REASON)
    assert read["gelu/triton"]["median_s"]


def test_a_file_in_a_kernels_name_is_no_markup(records):
    twice = [replace(r, source={"file": f"a[{i}].py"}) for i, r in enumerate([records[0], records[0]])]
    terminal = Console(file=io.StringIO(), width=200)
    terminal.print(to_rich(next(bench.parts(twice))))
    assert "gelu/torch (a[0].py)" in terminal.file.getvalue()


def test_times_of_two_devices_are_in_tables_of_their_own(records):
    other = [replace(r, provenance=r.provenance | {"gpu": "Another GPU"}) for r in records]
    titles = [part.title for part in bench.parts([*records, *other]) if isinstance(part, Table)]
    assert [title.rpartition("  ")[2] for title in titles] == ["(Synthetic GPU)", "(Another GPU)"]
