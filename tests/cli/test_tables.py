"""Tables on terminals of any width and in a pipe: every column and every word is there, whole."""

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from assay.cli.history import device, summed_up
from assay.report.export import export
from command import assay
from made_records import synthetic_benches
from pseudo_terminal import ROOT, watch

LONG = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
COLUMNS = ("cold", "±", "hot", "call", "GB/s", "copy", "limit", "speedup")
EXTRA = ("TFLOP/s", "compile", "kernels")
SHOW = f"""
import sys
from dataclasses import replace
sys.path.insert(0, {str(ROOT / "tests" / "support")!r})
from assay.cli import bench, screen
from made_records import synthetic_benches

made = synthetic_benches(ops={{"gelu": (1, 12)}}, sizes=(10,), dtypes=("bf16",))
more = {{"tflops": 1.5, "compile_seconds": 0.25, "launches": 1}}
bench.show([replace(r, evidence=r.evidence | more) for r in made], screen.console())
"""


def words(text):
    return " ".join(text.split())


def piped(*command, **more):
    """What a command prints into a pipe, as in a CI log: with no terminal and no COLUMNS."""
    variables = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"PYTHONPATH": str(ROOT / "src")} | more
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=variables, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_line_and_a_column_of_a_source_are_not_taken_for_an_emoji():
    shown = "from assay.cli import screen; screen.console().print('k.cu:100:7', soft_wrap={}); "
    assert piped("-c", "".join(shown.format(how) for how in (True, False))).split() == ["k.cu:100:7"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"FORCE_COLOR": "1"}, {"COLUMNS": "40"}], ids=["bare", "colours", "COLUMNS"])
def test_a_piped_table_has_every_column(more):
    text = re.sub(r"\x1b\[[0-9;]*m", "", piped("-c", SHOW, **more))
    heads = [line.split() for line in text.splitlines() if line.startswith("kernel ")]
    assert [h for line in heads for h in line if h != "kernel"] == [*COLUMNS[:5], *EXTRA, *COLUMNS[5:]]
    assert "speedup: over gelu/torch" in words(text) and "copy, limit: its speed in % of" in words(text)
    assert "…" not in text and (len(heads) == 1) == ("COLUMNS" not in more)
    assert not [line for line in text.splitlines() if line != line.rstrip()] or "FORCE_COLOR" in more


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "told"), [(40, None), (80, None), (160, None), (160, "40")])
def test_a_table_fits_the_terminal_or_what_columns_says_and_nothing_is_cut(columns, told):
    seen = watch("-c", SHOW, columns=columns, env={"COLUMNS": told} if told else {})
    assert seen.code == 0, seen.text
    width = int(told or columns)
    heads = [line for line in seen.lines if line.startswith("kernel ")]
    expected = (*COLUMNS, *EXTRA) if width >= 108 else COLUMNS
    assert sorted(h for line in heads for h in line.split() if h != "kernel") == sorted(expected)
    assert "…" not in seen.text
    assert all(len(line) <= min(width, columns) for line in seen.lines), seen.text
    if width >= 108:
        assert len(heads) == 1


@pytest.fixture
def two_runs(tmp_path):
    """Old and new of one kernel, and between them a run of something else; the newest times nothing at all."""
    gelu, softmax = (
        [
            replace(r, provenance=r.provenance | {"gpu": None, "cpu": LONG, "commit": "abc1234"})
            for r in synthetic_benches(ops={op: (1, 9)}, ways={"torch": 1.0, "cuda:naive": 0.7}, sizes=(10,), rounds=9)
        ]
        for op in ("gelu", "softmax")
    )
    check = replace(gelu[0], verb="check", samples=None, median=None, interval=None, run="20260104-000000-dddddd")
    runs = {"20260101-000000-aaaaaa": gelu, "20260102-000000-bbbbbb": softmax, "20260103-000000-cccccc": gelu}
    records = [replace(r, run=run) for run, of_run in runs.items() for r in of_run]
    export([*records, check], tmp_path / "in.json")
    assert assay("history", "--import", tmp_path / "in.json", "--store", tmp_path / "store").code == 0
    return tmp_path / "store"


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 240])
def test_history_and_compare_name_kernels_and_whole_devices(two_runs, columns):
    seen = watch("-m", "assay", "history", "--store", two_runs, columns=columns)
    said = words(seen.text)
    assert "…" not in said and "Intel(R" not in said and all(len(line) <= columns for line in seen.lines), seen.text
    for name in ("gelu/cuda:naive", "softmax/torch", "20260103-000000-cccccc", "abc1234", "8481C"):
        assert name in said, seen.text
    seen = watch("-m", "assay", "compare", "--store", two_runs, columns=columns)
    said = words(seen.text)
    assert "…" not in said and "on Intel Xeon Platinum 8481C" in said, seen.text
    assert "old 20260101-000000-aaaaaa" in said and "new 20260103-000000-cccccc" in said
    assert "gelu/cuda:naive" in said and "dtype=bf16" in said and "4 SAME" in said


def test_history_in_a_pipe_is_one_line_a_run(two_runs):
    lines = piped("-m", "assay", "history", "--store", str(two_runs)).splitlines()
    head, *rows = lines[:-1]
    assert head.split("  ")[0] == "run" and head.rstrip().endswith("commit") and len(rows) == 4
    assert rows[0].split()[1] == "check" and rows[0].endswith("abc1234") and "Intel Xeon Platinum 8481C" in rows[0]


def test_where_no_two_runs_match_compare_says_so(two_runs, tmp_path):
    same = assay("compare", "last", "--store", two_runs)
    assert same.code == 2 and "last and last are the same run" in same.said and "last~1 last" in same.said
    once = tmp_path / "once"
    export([next(iter(synthetic_benches(rounds=9)))], tmp_path / "one.json")
    assay("history", "--import", tmp_path / "one.json", "--store", once)
    done = assay("compare", "--store", once)
    assert done.code == 2 and "there is 1 timed run, and no two have a kernel" in done.said and "twice" in done.said


def test_many_kernels_are_summed_up_by_op():
    assert summed_up(["gelu/cuda", "gelu/triton"]) == "gelu/cuda, gelu/triton"
    assert summed_up([*(f"gelu/k{n}" for n in range(7)), "silu/torch"]) == "gelu (7), silu"
    assert summed_up([f"{op}/k{n}" for op in "abcde" for n in "12"]) == "a (2), b (2), c (2) and 4 more"
    assert (
        summed_up(["does_nothing", "off_by_one", "races", "shuffled"]) == "does_nothing, off_by_one, races and 1 more"
    )


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (LONG, "Intel Xeon Platinum 8481C"),
        ("NVIDIA H200", "NVIDIA H200"),
        ("AMD EPYC 9R14", "AMD EPYC 9R14"),
        ("", ""),
    ],
)
def test_a_device_is_named_without_marks_of_trade(name, short):
    assert device(name) == short
