"""A launch that no planned workload leads to is found by running the kernel's Python alone, and tried."""

import shutil

import pytest

import assay
from assay.record import Status

TRITON = """
import triton, triton.language as tl
from assay import kernel

KEPT = {{}}

@triton.jit
def _short(x, y, cols, B: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * cols + tl.arange(0, B)
    m = tl.arange(0, B) < cols
    v = tl.load(x + at, mask=m, other=0)
    tl.store(y + at, tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=m)

@triton.jit
def _long(x, y, cols, B: tl.constexpr):
    for start in range(0, cols, B):
        c = start + tl.arange(0, B)
        at = tl.program_id(0).to(tl.int64) * cols + c
        v = tl.load(x + at, mask=c < cols{inside}, other=0)
        tl.store(y + at, tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=c < cols)

@assay.op(
    axes={{"rows": assay.Axis(typical=64), "cols": assay.Axis(typical=64)}},
    inputs={{"x": assay.Tensor("rows", "cols")}},
    outputs={{"out": assay.Tensor("rows", "cols")}},
    independent="rows",
)
def rows_of_relu(x):
    return x.relu()

@kernel("rows_of_relu")
def mine(x, *, out):
    rows, cols = x.shape
    if not (rows and cols):
        return
    {plan}
    if cols.bit_length() < {long} or rows.bit_length() < 6:
        _short[(rows,)](x, out, cols, triton.next_power_of_2(cols))
    else:
        _long[(rows,)](x, out, cols, 512)
"""


def check(write, inside="", plan="", long=13):
    file = write("mine.py", "import assay\n" + TRITON.format(inside=inside, plan=plan, long=long))
    (record,) = assay.check(file, dtypes=["fp32"])
    return record


@pytest.mark.slow
def test_a_wrong_launch_behind_a_condition_on_two_axes_is_found(write):
    record = check(write, inside=" - 1")
    assert record.status is Status.FAIL, record.reason
    axes = dict(part.split("=") for part in record.evidence["found_at"].split(",")[:2])
    assert int(axes["cols"]) >= 4096 and int(axes["rows"]) >= 32


@pytest.mark.slow
def test_a_record_counts_the_workloads_that_led_to_each_launch(write):
    record = check(write)
    assert record.status is Status.PASS, record.reason
    launches = record.evidence["coverage"]["launches"]
    assert [name.partition(" ")[0] for name in launches] == ["_short", "_long"] and min(launches.values()) >= 2
    assert record.evidence["coverage"]["workloads"]["launch"] >= 2


def test_a_launch_that_is_too_large_to_try_here_is_named_with_a_shape(write):
    record = check(write, inside=" - 1", long=22)
    assert record.status is Status.PASS and "; not launched here: _long (line " in record.reason
    assert "as on rows=" in record.reason


@pytest.mark.slow
def test_what_a_kernel_keeps_is_not_kept_from_tensors_without_memory(write):
    record = check(write, plan="KEPT.setdefault(tuple(x.shape), x.new_zeros(1)).item()")
    assert record.status is Status.PASS, record.reason


CUDA = """
from assay import kernel
from assay.backends.cuda import Source

source = Source("mine.cu")

@kernel("softmax")
def mine(x, *, out):
    rows, cols = x.shape
    many = rows.bit_length() > 6 and cols.bit_length() > 14
    if many:
        source["many"](rows, 32, x, out, cols)
    else:
        source["few"](rows, 32, x, out, cols)
"""


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there it runs")
def test_without_a_gpu_each_launch_is_built(write):
    body = "(const float* x, float* y, long long cols) {}\n"
    write("mine.cu", "".join(f'extern "C" __global__ void {name}{body}' for name in ("few", "many")))
    (record,) = assay.check(write("mine.py", CUDA), dtypes=["fp32"])
    assert record.status is Status.COMPILED and record.reason.endswith("2 instances for sm_90: few, many")
