"""`assay run` takes what `check` and `bench` take, and passes it on to them."""

import json

import pytest
import typer

from assay.cli.main import app
from command import assay

RIGHT = """
import torch
from assay import kernel

@kernel("gelu", backend="torch", variant="mine")
def gelu(x, *, out, times=1):
    for _ in range(times):
        out.copy_(torch.nn.functional.gelu(x))
"""


def options(verb):
    return {p.name for p in typer.main.get_command(app).commands[verb].params}


def test_run_has_every_option_of_check_and_bench():
    assert options("check") - options("run") == set()
    assert options("bench") - options("run") == {"sweep"}  # a file that says all of this is bench's own


def test_the_options_reach_both_verbs(write, tmp_path):
    file = write("mine.py", RIGHT)
    done = assay(
        *(
            "run",
            file,
            "--workload",
            "n=64,dtype=fp32",
            "--param",
            "times=2",
            "--seed",
            "5",
            "--quick",
            "--budget",
            "0.1",
        ),
        *("--against", "", "--threads", "1", "--json"),
    )
    records = {r["verb"]: r for r in json.loads(done.out)["records"] if r["kernel"] == "gelu/torch:mine"}
    assert done.code == 0 and {r["status"] for r in records.values()} == {"pass"}
    assert {r["evidence"]["parameters"]["times"] for r in records.values()} == {2}
    assert {r["workload"] for r in records.values()} == {"n=64,dtype=fp32"}
    assert {r["provenance"]["seed"] for r in records.values()} == {5}
    assert records["bench"]["evidence"]["threads"] == 1


def test_what_the_limit_leaves_out_is_skipped_with_the_reason(write):
    file = write("mine.py", RIGHT)
    done = assay("bench", file, "--axis", "n=8,16", "--limit", "0.1", "--quick", "--json")
    later = [r for r in json.loads(done.out)["records"] if r["workload"].startswith("n=16")]
    assert later and {r["status"] for r in later} == {"skipped"}
    assert all("--limit left it out" in r["reason"] for r in later)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--against", "jax"), "--against jax: no such backend"),
        (("--axis", "m=5"), "gelu has no axis 'm'"),
        (("--workload", "n=5,inplace=1"), "an in-place workload changes its own inputs"),
        (("--param", "BLOCK=1"), "BLOCK"),
    ],
)
def test_an_option_of_bench_is_refused_before_the_check_begins(words, said, write):
    done = assay("run", write("mine.py", RIGHT), *words)
    assert done.code == 2 and said in done.said and "pass" not in done.out


def test_run_without_a_name_does_not_begin_with_the_whole_library():
    done = assay("run")
    assert done.code == 2 and "run what?" in done.said and "--all" in done.said
