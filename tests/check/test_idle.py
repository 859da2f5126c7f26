"""A kernel that declares a GPU language and lets PyTorch compute every result fails: nothing of it was judged."""

import pytest

import assay
from assay.record import Status

HEAD = """
import torch, triton, triton.language as tl
from numba import cuda
from assay import kernel
from assay.backends.numba import launch

@triton.jit
def _copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0, propagate_nan=tl.PropagateNan.ALL), mask=i < n)

@cuda.jit
def _relu(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 0 if x[i] < 0 else x[i]
"""
BODIES = {
    "by PyTorch": "    out.copy_(x.relu())",
    "by PyTorch from some length on": {
        "triton": "    if x.numel() > 100: out.copy_(x.relu())\n"
        "    elif x.numel(): _copy[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), 64)",
        "numba": "    launch(_relu, -(-x.numel() // 64), 64, x, out)",
    },
}


@pytest.mark.parametrize("backend", ["triton", "numba"])
@pytest.mark.parametrize("how", BODIES)
def test_a_kernel_launches_something_in_its_language(write, backend, how):
    body = BODIES[how] if isinstance(BODIES[how], str) else BODIES[how][backend]
    file = write("mine.py", f'{HEAD}\n@kernel("relu", backend="{backend}")\ndef mine(x, *, out):\n{body}\n')
    (record,) = assay.check(file, dtypes=["fp32"], workloads=6)
    if how == "by PyTorch":
        assert record.status is Status.FAIL and record.detector == "launch", record.reason
        assert "launches nothing in " in record.reason and 'backend="torch"' in record.reason
    else:
        assert record.detector != "launch", record.reason
