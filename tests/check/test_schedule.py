"""Judging in several processes."""

import subprocess
import sys

import pytest

import assay

FILE = """
import torch
from assay import kernel

torch.ones(1 << 22).double().sum()  # starts PyTorch's threads, which a forked process does not have

@kernel("{op}", backend="torch", variant="mine")
def mine(x, *, out):
    out.copy_(torch.nn.functional.{op}(x))
"""
CHECK = "import os; os.cpu_count = lambda: 8\nfrom assay.cli import main\nmain()"


@pytest.mark.slow
def test_files_that_started_threads_when_they_were_read_are_judged_in_several_processes(tmp_path):
    files = []
    for op in ("gelu", "silu"):
        files.append(tmp_path / f"{op}.py")
        files[-1].write_text(FILE.format(op=op))
    command = [sys.executable, "-c", CHECK, "check", *map(str, files), "--dtype", "fp32", "-j", "2"]
    out = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert "2 pass" in out.stdout, out.stdout + out.stderr


ORDER = """
import numpy as np
from assay import Axis, Tensor, kernel, op

@op(axes={{"n": Axis(min=1, typical=5000)}}, inputs={{"x": Tensor("n")}}, outputs={{"out": Tensor()}}, dtypes=("fp32",))
def total(x):
    return x.sum()

@kernel("total", backend="njit", variant="mine")
def mine(x, *, out):
    behind = np.frombuffer((np.ctypeslib.ctypes.c_uint8 * 1).from_address(x.data_ptr() + 4 * x.numel()), np.uint8)[0]
    values = x.numpy() if behind == 0xFF else x.numpy()[::-1]
    out.fill_({result})
"""


@pytest.mark.slow
def test_two_right_results_may_follow_the_bytes_behind_a_tensor_and_a_wrong_one_may_not(tmp_path):
    """As the order of atomic additions may on a GPU: the bytes change no value, only the order of a sum."""
    found = {}
    for name, result in (("right", "float(np.cumsum(values)[-1])"), ("wrong", "float(values.sum()) + float(behind)")):
        file = tmp_path / f"{name}.py"
        file.write_text(ORDER.format(result=result))
        # A wrong value may be noticed before the bytes behind it; a workload that is named is examined most closely.
        (found[name],) = assay.check(file, **({"workload": "n=300,dtype=fp32"} if name == "wrong" else {}))
    assert found["right"].status == "pass", found["right"].reason
    assert found["right"].evidence["nondeterministic_workloads"]
    assert found["wrong"].reason.startswith("overread"), found["wrong"].reason
