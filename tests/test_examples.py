"""Every example holds: its honest kernel passes (or compiles, where it can only be compiled) and its mistake is caught.

All of them take many minutes, so `make slow` runs a few of each language; `make examples` runs all."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import assay
from assay import host
from assay.catalog.reader import kernels_in
from assay.catalog.select import gather, select

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"
PROBLEMS = sorted(p.stem for p in FOLDER.glob("*.py"))
SAMPLE = ["cross_entropy", "matvec"]
"""Triton, Numba on the CPU, CUDA C++; an index input."""
ALL = os.environ.get("ASSAY_EXAMPLES") == "all"
TRIED = None if ALL else 8
"""Workloads for an honest kernel; None: as many as `assay check` tries. A mistake always has that many: it is caught
early."""
WRONG_RESULT = {"values", "nonfinite", "unwritten", "guard", "overread", "input", "stale", "unstable", "random"}
"""What a planted mistake may be caught by: its result, not an accident on the way to it."""


def honest(name):
    return FOLDER / f"{name}.py"


def mistake(name):
    return FOLDER / "mistakes" / f"{name}.py"


def judged(record):
    """Could it run here at all?"""
    return record.status not in ("compiled", "skipped")


def test_every_problem_has_an_honest_kernel_and_a_mistake_of_the_same_op():
    """Read as the command reads them, all in one command, and without running any."""
    files = [f for name in PROBLEMS for f in (honest(name), mistake(name))]
    assert {p.stem for p in (FOLDER / "mistakes").glob("*.py")} == set(PROBLEMS) and len(PROBLEMS) >= 40
    found = gather(files)
    assert not found.refused
    ops = {name: {(op.name, op.source) for k, op in found.choices if k.file.stem == name} for name in PROBLEMS}
    assert ops == {name: {(name, str(honest(name)))} for name in PROBLEMS}
    for folder in (FOLDER, FOLDER / "mistakes"):
        languages = Counter(k.address.backend for k, _ in found.choices if k.file.parent == folder)
        assert languages["triton"] >= 14 and languages["njit"] + languages["numba"] >= 10 and languages["cuda"] >= 6
        assert not languages["torch"] and not languages["inductor"]


def test_an_honest_kernel_does_its_own_arithmetic():
    """Of PyTorch, a launch calls nothing but what describes a tensor."""
    import ast

    import torch

    described = {"view", "shape", "stride", "numel", "size", "uint8"}
    for name in PROBLEMS:
        kernels = {k.function for k in kernels_in(honest(name))}
        for node in ast.parse(honest(name).read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name in kernels:
                used = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)} & {*dir(torch.Tensor)}
                assert used <= described, (name, used - described)


def test_the_tables_are_what_the_examples_give():
    done = subprocess.run([sys.executable, ROOT / "tools" / "examples.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS if ALL else SAMPLE)
def test_the_honest_kernel_passes_and_the_mistake_is_caught(name):
    """The same command judges both; one dtype is enough for a sample."""
    (_, op), *_ = select([honest(name)])
    dtypes = {} if ALL else {"dtypes": op.dtypes[:1]}
    records = list(assay.check(honest(name), workloads=TRIED, **dtypes))
    ran = [r for r in records if judged(r)]
    assert ran and all(r.status == "pass" for r in ran), [(r.kernel, r.reason, r.replay) for r in ran]
    assert all(r.status != "fail" for r in records)
    wrong = [r for r in assay.check(mistake(name), **dtypes) if judged(r)]
    assert wrong and {str(r.status) for r in wrong} == {"fail"}, [(r.kernel, r.workload, r.reason) for r in wrong]
    assert {r.evidence["detector"] for r in wrong} <= WRONG_RESULT, [(r.kernel, r.reason) for r in wrong]


@pytest.mark.parametrize("name", ["relu_strided"])
def test_a_bare_cuda_file_takes_the_strides_of_an_op_that_a_python_file_declares(name, assay, tmp_path):
    """The replay names the op together with its file."""
    which = ("--op", f"{FOLDER / 'relu.py'}:relu", "--dtype", "fp32")
    done = assay("check", FOLDER / f"{name}.cu", *which, cwd=tmp_path)
    assert done.returncode == 0 and f"relu/cuda:{name}" in done.stdout, done.stdout + done.stderr
    if host.runs_on_gpu():
        done = assay("check", FOLDER / "mistakes" / f"{name}.cu", *which, cwd=tmp_path)
        assert done.returncode == 1 and f"--op {FOLDER / 'relu.py'}:relu" in " ".join(done.stdout.split())
