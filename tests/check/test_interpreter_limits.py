"""What is too much for an interpreter is left out and named. It is never a kernel's failure, and does not keep a check
from a verdict on the rest."""

import pytest

import assay
from assay import host
from assay.check import exploring

pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(host.runs_on_gpu(), reason="there is a GPU: nothing is interpreted")

ROW_SUM = """
    import triton
    import triton.language as tl

    from assay import Axis, Tensor, kernel, op


    @op(
        axes={"rows": Axis(typical=4097), "cols": Axis(min=1, max=256, typical=64)},
        inputs={"x": Tensor("rows", "cols", range=(-100, 100))},
        outputs={"out": Tensor("rows")},
        magnitude=lambda x: x.abs().sum(-1),
    )
    def row_sum(x):
        return x.sum(-1)


    @triton.jit
    def _sum(x, y, cols, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, cols, BLOCK):
            i = start + tl.arange(0, BLOCK)
            total += tl.load(x + row * cols + i, mask=i < cols, other=0.0).to(tl.float32)
        tl.store(y + row, tl.sum(total, 0).to(y.dtype.element_ty))


    @kernel("row_sum")
    def mine(x, *, out):
        _sum[(x.shape[0],)](x, out, x.shape[1], 256)
"""


@pytest.mark.slow
def test_a_kernel_with_one_program_a_row_passes_although_its_typical_workload_is_too_large(write):
    (record,) = assay.check(write("mine.py", ROW_SUM), dtypes="bf16", workloads=12)
    assert record.status == "pass", record.reason
    assert "left out: more programs than Triton's interpreter runs" in record.reason
    left_out = record.evidence["coverage"]["left_out"]["more programs than Triton's interpreter runs"]
    assert any("rows=4097" in w for w in left_out)


SLOW = """
    import time

    import triton
    import triton.language as tl

    from assay import kernel


    @triton.jit
    def _gelu(x, y, n, BLOCK: tl.constexpr):
        i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n).to(tl.float32)
        tl.store(y + i, 0.5 * v * (1 + tl.erf(v * 0.70710678)), mask=i < n)


    @kernel("gelu")
    def mine(x, *, out):
        if x.numel() > LIMIT:
            time.sleep(20)
        _gelu[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), 4096)
"""


@pytest.mark.slow
def test_a_kernel_that_is_slow_on_most_workloads_neither_fails_nor_passes(write):
    """It may be slow on purpose where it is wrong."""
    (record,) = assay.check(write("mine.py", SLOW.replace("LIMIT", "600")), dtypes="fp32", workloads=5, seconds=1)
    assert record.status == "inconclusive", record.reason
    assert "too slow in Triton's interpreter" in record.reason


def test_where_nothing_can_be_judged_the_check_is_inconclusive(write):
    file = write("mine.py", SLOW.replace("LIMIT", "3000"))
    (record,) = assay.check(file, workload="n=5000,dtype=fp32", seconds=1)
    assert record.status == "inconclusive"
    assert "no workload was tried: too slow in Triton's interpreter" in record.reason


@pytest.mark.slow
def test_the_verdict_on_a_kernel_does_not_depend_on_how_busy_the_machine_is(write, monkeypatch):
    """Operations are counted, not seconds. What helps is named: few rows, since each is a program."""
    monkeypatch.setattr(exploring, "_WORK", (2000, 2000))
    file = write("mine.py", ROW_SUM)
    (idle,) = assay.check(file, dtypes="fp32")
    seconds = exploring._processor_seconds
    monkeypatch.setattr(exploring, "_processor_seconds", lambda worker: 4 * seconds(worker))
    (busy,) = assay.check(file, dtypes="fp32")
    assert idle.status == busy.status == "inconclusive"
    assert idle.reason == busy.reason
    assert idle.evidence["workloads"] == busy.evidence["workloads"] > 8
    assert "starts a program for each of `rows`: declare Axis(…, problems=True)" in idle.reason
    (few,) = assay.check(write("few.py", ROW_SUM.replace("Axis(t", "Axis(problems=True, t")), dtypes="fp32")
    assert few.evidence["workloads"] > idle.evidence["workloads"]
    assert "problems=True" not in few.reason
