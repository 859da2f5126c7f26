"""The command line: one document on stdout, exit codes, Ctrl-C keeps what was done."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from assay import host
from assay.catalog import library
from assay.cli.fitted import fitted
from assay.kernel import BACKENDS

ROOT = Path(__file__).parents[2]


def test_list_shows_every_op_and_backend_with_what_can_be_done_and_why(assay):
    done = assay("list", "--json")
    records = json.loads(done.stdout)["records"]
    assert {r["kernel"] for r in records} == {k.name for k in library.kernels()}
    if not host.runs_on_gpu():
        cuda = next(r for r in records if r["kernel"] == "gelu/cuda")
        assert cuda["status"] == "compiled" and "no GPU here" in cuda["reason"] and cuda["evidence"]["fix"]
    text = assay("list").stdout
    for name in (*library.ops(), *BACKENDS):
        assert name in text


def test_doctor_names_the_machine_and_the_fix_for_what_is_missing(assay):
    records = {r["kernel"]: r for r in json.loads(assay("doctor", "--json").stdout)["records"]}
    assert records["backends/torch"]["status"] == "pass"
    assert str(os.cpu_count()) in records["machine/cpu"]["reason"]
    missing = [r for r in records.values() if r["status"] == "skipped"]
    assert all(r["evidence"]["fix"] for r in missing)
    assert "nvcc" in assay("doctor").stdout


@pytest.mark.slow
def test_a_missing_package_is_reported_with_the_command_that_brings_it(assay_process, tmp_path):
    """A package that is not there: shadow numba with a finder that denies it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.abc, sys\n"
        "class Gone(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.split('.')[0] == 'numba': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Gone())\n"
    )
    without = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'src'}"}
    done = assay_process("check", "gelu/njit", "--json", env=without)
    assert done.returncode == 0, done.stderr
    assert {r["status"] for r in json.loads(done.stdout)["records"]} == {"skipped"}
    assert "pip install numba" in done.stdout
    strict = assay_process("check", "gelu/njit", "--json", "--strict", env=without)
    assert strict.returncode == 1
    strict = assay_process("check", "gelu/njit", "--dtype", "fp32", "--strict", env=without)
    assert strict.stdout.splitlines()[-1] == "1 skipped — with --strict, 1 without a verdict counts as failed"


def test_json_is_one_document_that_follows_its_schema(assay, tmp_path):
    from pydantic import TypeAdapter

    from assay.record import Record

    out = tmp_path / "deep" / "records.json"
    done = assay("check", "gelu/torch", "--dtype", "fp16,fp32", "--workloads", "3", "--json", "--out", out)
    document = json.loads(done.stdout)
    assert document == json.loads(out.read_text())
    records = TypeAdapter(list[Record]).validate_python(document["records"])
    assert [r.status for r in records] == ["pass", "pass"]
    assert len({r.run for r in records}) == 1 and document["run"] == records[0].run


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_done(tmp_path, write):
    out = tmp_path / "kept.json"
    sleeps = write(
        "sleeps.py", 'import time\nfrom assay import kernel\n\n@kernel("gelu")\ndef f(x, *, out): time.sleep(99)\n'
    )
    few = ("--dtype", "fp32", "--workloads", "2", "-j", "1")
    process = subprocess.Popen(
        [sys.executable, "-m", "assay", "check", "gelu/torch", str(sleeps), *few, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"},
    )
    first = process.stdout.readline()
    assert "gelu/torch" in first
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in rest and "Traceback" not in errors
    document = json.loads(out.read_text())
    assert document["interrupted"] is True
    assert [r["kernel"] for r in document["records"]] == ["gelu/torch"]


@pytest.mark.parametrize("verb", ["doctor", "list", "check", "run", "selftest"])
def test_every_verb_explains_itself(verb, assay):
    done = assay(verb, "--help")
    assert done.returncode == 0 and "--json" in done.stdout


@given(
    st.lists(st.lists(st.text("abc µ×", min_size=1, max_size=12), min_size=3, max_size=3), min_size=3, max_size=9),
    st.integers(30, 120),
)
def test_a_table_wider_than_the_terminal_is_several_with_every_column_once_and_nothing_cut(columns, width):
    table = Table(box=None, pad_edge=False, collapse_padding=True, title="title")
    for number, cells in enumerate(columns):
        table.add_column(f"head{number}", no_wrap=True)
        assert len(cells) == 3
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    shown = fitted(table, width, keep=2)
    heads = [[c.header for c in one.columns] for one in shown]
    assert all(h[:2] == ["head0", "head1"] for h in heads)
    assert [name for h in heads for name in h[2:]] == [f"head{n}" for n in range(2, len(columns))]
    text = io.StringIO()
    Console(file=text, width=max(width, 40)).print(*shown)
    assert "…" not in text.getvalue() and text.getvalue().count("title") == 1


def test_a_junit_file_for_ci(assay, write, tmp_path):
    from junitparser import JUnitXml

    write(
        "k.cu",
        """\
        // assay: f<T><<<cdiv(n, 256), 256>>>(x, out, int(n))
        #include <cmath>
        template <typename T> __global__ void f(const T* x, T* y, int n) {}
        """,
    )
    done = assay("check", "k.cu", "--op", "gelu", "--dtype", "fp32", "--junit", "k.xml", cwd=tmp_path)
    (case,) = next(iter(JUnitXml.fromfile(str(tmp_path / "k.xml"))))
    assert done.returncode == 1 and case.result[0].type == "fail" and "expf" in done.stdout


def test_another_compiler_builds_and_is_part_of_the_replay(assay, monkeypatch, write, tmp_path):
    from assay.backends.cuda import Source
    from assay.catalog.called import called
    from assay.target import Target

    write("k.cu", "// assay: f<<<1, 1>>>(x, out, n)\n")
    monkeypatch.setenv("ASSAY_COMPILER", "nvcc")
    built = SimpleNamespace(ptx=b"by nvcc")
    monkeypatch.setattr("assay.backends.nvcc.build", lambda *_: built)
    assert Source(tmp_path / "k.cu").build("f", Target("sm_90")) is built
    kernel = next(k for k in library.kernels() if k.name == "gelu/cuda")
    assert called(kernel, library.ops()["gelu"]) == "gelu/cuda --compiler nvcc"
    assert assay("check", "k.cu", "--op", "gelu", "--compiler", "gcc", cwd=tmp_path).returncode == 2
