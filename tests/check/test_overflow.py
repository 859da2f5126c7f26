"""Where a value inside the reference leaves the range of its format, PyTorch's error is no measure of a kernel's."""

import pytest
import torch

import assay
from assay.check import overflow
from assay.inputs import generate
from assay.op import Axis, Op, Tensor
from assay.workload import Workload

SOURCE = """
import torch
from assay import Axis, Tensor, kernel, op

@op(axes={"n": Axis(typical=64), "d": Axis(min=1, typical=256)},
    inputs={"x": Tensor("n", "d", range=(-1000, 1000), specials=())}, outputs={"out": Tensor("n", "d")},
    dtypes=("fp16",))
def rms(x):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)

@kernel("rms", backend="torch")
def squares_in_fp16(x, *, out):
    out.copy_(x * torch.rsqrt((x * x).float().mean(-1, keepdim=True) + 1e-5))

@kernel("rms", backend="torch")
def in_fp32(x, *, out):
    y = x.float()
    out.copy_(y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-5))

Q = Tensor("n", dtype="int8", range=(-128, 127))

@op(axes={"n": Axis(typical=4096)}, inputs={"q": Q, "zero": Q, "scale": Tensor("n", range=(0, 10))},
    outputs={"out": Tensor("n")}, dtypes=("fp32",))
def dequantize(q, zero, scale):
    return (q - zero) * scale

@kernel("dequantize", backend="torch")
def zero_where_it_wraps(q, zero, scale, *, out):
    d = q.int() - zero.int()
    out.copy_(torch.where((d > 127) | (d < -128), 0, d) * scale)

@kernel("dequantize", backend="torch")
def in_int32(q, zero, scale, *, out):
    out.copy_((q.int() - zero.int()) * scale)
"""


@pytest.mark.slow
def test_a_hidden_overflow_of_the_reference_excuses_no_kernel(write):
    records = {r.variant: r for r in assay.check(write("wraps.py", SOURCE), workloads=24)}
    for name, what in (
        ("squares_in_fp16", "fp16 arithmetic, which overflows\n  → compute in float32, and round only the result"),
        ("zero_where_it_wraps", "int8 arithmetic, which wraps around\n  → compute in a wider integer"),
    ):
        finding, _, note = records[name].reason.partition("; PyTorch itself is wrong with ")
        assert records[name].failed and finding.startswith(("values: `out`", "nonfinite: `out`"))
        first, *details = note.split("\n")
        assert [first, details[-1]] == what.split("\n")
        assert records[name].evidence["torch_wrong"]
    for name in ("in_fp32", "in_int32"):
        assert records[name].status == "pass" and "PyTorch itself is wrong with" in records[name].reason


def squares(x):
    return (x * x).sqrt()


def clipped(x):
    return torch.where(x > 0, x, torch.inf).clamp(max=3)


def converted(x):
    return (x.float() * 1e4).to(x.dtype) / 1e4


@pytest.mark.parametrize(
    ("reference", "number", "values", "what"),
    [
        (squares, "fp16", [1.0, -200.0], ""),
        (squares, "fp16", [1.0, -300.0], "fp16 arithmetic, which overflows"),
        (squares, "bf16", [1.0, -300.0], ""),
        (squares, "fp16", [float("inf"), float("nan")], ""),
        (clipped, "fp16", [-1.0, 2.0], ""),
        (converted, "fp16", [1.0, 2.0], ""),
        (converted, "fp16", [1.0, 9.0], "fp16 arithmetic, which overflows"),
    ],
)
def test_only_what_float32_holds_is_an_overflow(reference, number, values, what):
    axes, x, out = {"n": Axis()}, {"x": Tensor("n")}, {"out": Tensor("n")}
    op = Op(reference.__name__, reference, axes, x, out, dtypes=(number,), source=__file__)
    workload = Workload.of(op, f"n={len(values)},dtype={number}")
    drawn = {"x": torch.tensor(values).to(generate(workload)["x"].dtype)}
    found = overflow.in_wide_formats(workload, drawn)
    assert (found[1] if found else "") == what
    if found and reference is squares:
        assert torch.equal(found[0]["out"], drawn["x"].abs())
