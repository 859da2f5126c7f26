"""Offsets that overflow 32 bits are found in Triton kernels without a GPU, and without memory for 2³¹ elements."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay import Axis, Tensor
from assay.backends import Level, backend
from assay.catalog import library
from assay.catalog.select import select
from assay.check import past_32_bits
from assay.check.evidence import CheckEvidence, Past32Bits
from assay.dtype import dtype
from assay.errors import SourceError
from assay.inspect.gates import refuse_unknown_gates
from assay.op import op as declare
from assay.record import Record, Status
from assay.worker import Pool
from assay.workload import Workload

needs_triton = pytest.mark.skipif(backend("triton").availability().level is Level.MISSING, reason="no Triton")
HEAD = """\
import triton
import triton.language as tl
from assay import kernel
"""
ELEMENTWISE = """
@triton.jit
def _{name}(x, y, n, B: tl.constexpr):
    {body}


@kernel("silu", variant="{name}")
def {name}(x, *, out):
    {launch}
"""
STORED = "tl.store(y + i, v, mask=i < n)"
LAUNCH = "_{name}[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), 1024)"
KERNELS = {
    "in_32_bits": ("i = tl.program_id(0) * B + tl.arange(0, B); v = tl.load(x + i, mask=i < n); " + STORED, LAUNCH),
    "in_64_bits": (
        "i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B); v = tl.load(x + i, mask=i < n); " + STORED,
        LAUNCH,
    ),
    "stored_in_32_bits": ("i = tl.program_id(0) * B + tl.arange(0, B); tl.store(y + i, 0.0, mask=i < n)", LAUNCH),
    "added_in_32_bits": ("i = tl.program_id(0) * B + tl.arange(0, B); tl.atomic_add(y + i, 1.0, mask=i < n)", LAUNCH),
    "by_block_pointer": (
        "p = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * B,), (B,), (0,)); tl.load(p, boundary_check=(0,))",
        LAUNCH,
    ),
    "many_tiles_a_program": (
        "for t in range(tl.program_id(0), n // B, 8): tl.store(y + t * B + tl.arange(0, B), 0.0)",
        LAUNCH.replace("triton.cdiv(x.numel(), 1024)", "8"),
    ),
    "computed_in_advance": (STORED.replace("i", "tl.program_id(0)").replace("v", "0.0"), "x.float().exp(); " + LAUNCH),
    "launches_nothing": ("pass", "pass"),
}


def rows(body: str) -> str:
    return f"""
@triton.jit
def _rows(x, y, cols, stride, B: tl.constexpr):
    {body}
    c = tl.arange(0, B)
    v = tl.load(x + row * stride + c, mask=c < cols, other=float("-inf"))
    e = tl.exp(v - tl.max(v))
    tl.store(y + row * cols + c, e / tl.sum(e), mask=c < cols)


@kernel("softmax")
def by_rows(x, *, out):
    _rows[(x.shape[0],)](x, out, x.shape[1], x.stride(0), triton.next_power_of_2(x.shape[1]))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Past32Bits]:
    """What each kernel's addresses show."""
    folder = tmp_path_factory.mktemp("past")
    file = folder / "offsets.py"
    parts = [
        ELEMENTWISE.format(name=name, body=body, launch=launch.format(name=name))
        for name, (body, launch) in KERNELS.items()
    ]
    file.write_text(HEAD + "".join(parts))
    short, long = folder / "short.py", folder / "long.py"
    short.write_text(HEAD + rows("row = tl.program_id(0)"))
    long.write_text(HEAD + rows("row = tl.program_id(0).to(tl.int64)"))
    found = {}
    with Pool() as pool:
        for kernel, op in select([file, short, long]):
            workloads = past_32_bits.chosen(op, dtype("fp32"))
            assert kernel.file is not None
            name = kernel.address.variant if kernel.file == file else kernel.file.stem
            found[name], worker = past_32_bits.look(kernel, workloads, {}, pool, None)
            assert worker is not None
            worker.close()
    return found


@needs_triton
@pytest.mark.parametrize("name", ["in_32_bits", "stored_in_32_bits", "added_in_32_bits", "short"])
def test_an_offset_that_overflows_is_found_at_its_line(seen: dict[str, Past32Bits], name: str) -> None:
    one = seen[name]
    assert "overflows 32 bits" in one.problem and one.where.partition(".py:")[2].isdigit()
    assert one.stores == (name in ("stored_in_32_bits", "added_in_32_bits"))
    assert ("loads `x`[" in one.problem) != one.stores
    (index,) = (int(part.partition("]")[0]) for part in one.problem.split("`[")[1:])
    assert past_32_bits.INDEXED <= index < 2 * past_32_bits.INDEXED


@needs_triton
@pytest.mark.parametrize("name", ["in_64_bits", "by_block_pointer", "long"])
def test_offsets_of_64_bits_are_looked_at_and_right(seen: dict[str, Past32Bits], name: str) -> None:
    assert not seen[name].problem and seen[name].programs >= 24


@needs_triton
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("many_tiles_a_program", "too much"),
        ("computed_in_advance", "memory"),
        ("launches_nothing", "launches nothing"),
    ],
)
def test_what_cannot_be_looked_at_is_no_finding(seen: dict[str, Past32Bits], name: str, why: str) -> None:
    assert not seen[name].problem and why in seen[name].trouble


@needs_triton
def test_a_check_tells_of_it_and_a_thorough_one_fails(tmp_path) -> None:
    file = tmp_path / "own.py"
    body, launch = KERNELS["in_32_bits"]
    body = body.replace(STORED, "tl.store(y + i, v / (1 + tl.exp(-v)), mask=i < n)")
    file.write_text(HEAD + ELEMENTWISE.format(name="own", body=body, launch=launch.format(name="own")))
    (record,) = assay.check(file, dtypes=("fp32",), workloads=1, keep=False)
    assert record.status is Status.PASS and "past 2³¹ elements an offset overflows 32 bits" in record.reason
    saw = CheckEvidence.of(record).past_32_bits
    assert saw is not None and saw.problem
    failed = past_32_bits.joined(record, saw, refused=True)
    assert failed.status is Status.FAIL and failed.detector == "overread" and "tl.int64" in failed.reason
    (large,) = assay.check(file, workload=saw.workloads[-1], keep=False)
    assert large.status is Status.FAIL and saw.problem in large.reason


def test_a_kernel_that_was_looked_at_keeps_its_verdict() -> None:
    passed = Record("check", "silu/triton:own", "dtype=fp32", Status.PASS, "51 workloads", "run")
    joined = past_32_bits.joined(passed, Past32Bits(["n=1"], 24), refused=True)
    assert joined.status is Status.PASS and joined.reason == passed.reason


@pytest.mark.parametrize("name", sorted(library.ops()))
def test_the_workloads_have_a_tensor_that_only_32_unsigned_bits_can_index(name: str) -> None:
    op = library.ops()[name]
    for workload in past_32_bits.chosen(op, dtype("fp32")):
        tensors = [*op.inputs.values(), *op.outputs.values()]
        assert 2**31 < max(math.prod(workload.shape(t)) for t in tensors) < 2**32
        assert workload.allowed


def test_a_contract_without_such_sizes_needs_no_look() -> None:
    @declare(axes={"n": Axis(max=1 << 20)}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n")})
    def small(x: torch.Tensor) -> torch.Tensor:
        return x

    assert not list(past_32_bits.chosen(small, dtype("fp32")))
    assert past_32_bits.in_memory(select(["gelu/triton"])[0][0], Workload.of(library.ops()["gelu"], "n=1000"))


@needs_triton
@given(st.lists(st.integers(1, 1 << 22), min_size=1, max_size=3).map(tuple), st.integers(8, 40))
def test_chosen_programs_are_of_the_grid_and_include_its_corners(grid: tuple[int, ...], count: int) -> None:
    from assay.backends.triton_interpreter.addresses import chosen

    points = chosen(grid, count)
    assert len(points) == len(set(points)) <= count
    assert all(len(p) == len(grid) and all(0 <= at < n for at, n in zip(p, grid, strict=True)) for p in points)
    assert tuple(n - 1 for n in grid) in points and (0,) * len(grid) in points


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize(("bits", "status"), [("", Status.FAIL), (".to(tl.int64)", Status.PASS)])
def test_a_kernel_may_declare_that_it_computes_offsets_in_64_bits(write, bits, status):
    text = rows(f"row = tl.program_id(0){bits}").replace(
        '@kernel("softmax")', '@kernel("softmax", expects={"offset_bits": 64})'
    )
    (record,) = assay.check(write("mine.py", HEAD + text), dtypes=["fp32"], workloads=4)
    assert record.status is status, record.reason
    assert status is Status.PASS or "an offset that overflows 32 bits" in record.reason


@needs_triton
def test_no_other_number_of_bits_can_be_declared(write):
    text = rows("row = tl.program_id(0)").replace(
        '@kernel("softmax")', '@kernel("softmax", expects={"offset_bits": 32})'
    )
    ((kernel, _),) = select([write("mine.py", HEAD + text)])
    with pytest.raises(SourceError, match="offset_bits=32"):
        refuse_unknown_gates(kernel)
