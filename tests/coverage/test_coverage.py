"""The planned workloads cover the contract by construction, and say what they leave out."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import coverage, host
from assay.backends import here
from assay.catalog import library, source
from assay.catalog.select import select
from assay.check import exploring
from assay.check.exploring import EFFORTS, Bounds, Exploration
from assay.check.judge import Finding
from assay.check.outcome import Conditions, Outcome
from assay.coverage import constants, factors, regimes
from assay.coverage.constants import Constants
from assay.coverage.contract import PAST
from assay.dtype import dtype
from assay.isa.ptx import compared
from assay.kernel import Address, Kernel
from assay.op import Axis, Op, Tensor
from assay.values import Range, floats
from assay.workload import VALUES, Workload

OPS = sorted(library.ops())
NATIVE = EFFORTS["native"]


def plan(name, effort=NATIVE, **rest):
    return coverage.plan(library.find_op(name), dtype("fp32"), effort, **rest)


@pytest.mark.parametrize("name", OPS)
def test_every_planned_workload_is_inside_the_contract_and_the_typical_one_is_among_them(name):
    op = library.find_op(name)
    rows = plan(name).rows
    assert all(r.workload.allowed for r in rows)
    assert len({str(r.workload) for r in rows}) == len(rows)
    first = [r for r in rows if r.why != "again"]
    assert all(before.cost < 2 * after.cost + 1 for before, after in pairwise(first)), "cheap ones come first"
    typical = next(r for r in rows if r.why == "typical")
    last = list(op.axes)[-1]
    assert dict(typical.workload.axes)[last] in (op.axes[last].typical, dict(typical.workload.axes)[last])
    assert {r.workload.values for r in rows} >= set(factors.kinds(op, dtype("fp32")))


@pytest.mark.parametrize("name", ["layernorm", "softmax", "transpose", "mx_quantize"])
def test_most_pairs_of_levels_are_visited_and_the_rest_is_accounted_for(name):
    made = plan(name)
    assert made.visited(made.rows) > 0.8 * made.pairs
    everything = plan(name, NATIVE.times(8))
    impossible = sum(map(len, everything.impossible.values()))
    assert everything.visited(everything.rows) + impossible == everything.pairs


def test_the_holes_that_let_wrong_kernels_pass_are_closed():
    norm = [dict(r.workload.axes) for r in plan("layernorm").rows]
    assert any(a["rows"] >= 256 and a["cols"] >= 256 for a in norm)
    assert any(a["cols"] % 768 == 0 for a in norm)
    assert any(a["rows"] > 16384 and a["cols"] > 4 for a in norm), "a long axis stands beside others than 1"
    conv = [r.workload.sizes for r in plan("conv2d").rows]
    assert any(w.r == w.s == 3 and w.stride == 1 and w.c >= 8 for w in conv)
    assert max(r.workload.sizes.n for r in plan("sum").rows) > 3_000_000


@pytest.mark.parametrize("name", OPS)
def test_on_a_gpu_the_typical_workload_is_whole_and_some_tensor_is_too_long_for_an_index_in_float32(name):
    op = library.find_op(name)
    rows = plan(name, EFFORTS["cuda"]).rows
    assert [r.why for r in plan(name).rows].count("huge") == 0
    if not op.independent:
        return
    (typical,) = (r.workload for r in rows if r.why == "typical")
    assert dict(typical.axes) == {n: a.typical for n, a in op.axes.items()}
    tensors = [*op.inputs.values(), *op.outputs.values()]
    largest = max(math.prod(r.workload.shape(t)) for r in rows for t in tensors if op.independent in t.shape)
    # Typically one sequence or one row: a cost of 2²⁷ does not get them so far.
    lone = name in ("attention", "mx_linear", "int_linear")
    assert lone or largest > 2**24


@given(st.integers(3, 100_000), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_sizes_around_a_constant_of_the_kernel_are_tried_on_every_axis(constant, seed):
    op = library.find_op("transpose")
    rows = coverage.plan(op, dtype("fp32"), NATIVE, seed, Constants((constant,))).rows
    for axis in op.axes:
        sizes = {dict(r.workload.axes)[axis] for r in rows}
        assert {constant - 1, constant, constant + 1} <= sizes


def test_a_plan_is_the_same_for_the_same_seed_and_another_for_another():
    first, again, other = ([str(r.workload) for r in plan("layernorm", seed=s).rows] for s in (0, 0, 1))
    assert first == again != other


@given(st.integers(0, 40), st.integers(0, 5000))
def test_regimes_stay_within_the_axis(low, more):
    axis = Axis(min=low, max=low + more)
    for sizes in regimes.of(axis, 1 << 20).values():
        assert all(axis.min <= n <= axis.max for n in sizes) and sizes


def test_constants_are_found_in_branches_defaults_and_powers(tmp_path):
    file = tmp_path / "k.py"
    file.write_text(
        "def f(x, *, out, keep=8192):\n"
        "    if x.shape[1] % 768 == 0 and x.numel() > 3_000_000:\n"
        "        return 1 << 20\n"
        "    return x > 20.5\n"
    )
    found = constants.of(Kernel(Address("gelu", "torch"), file))
    assert {768, 3_000_000, 8192} <= set(found.sizes) and found.values == (20.5,)


def test_constants_of_the_kernel_and_of_what_it_calls_come_first(tmp_path):
    """A file with many kernels has more constants than are tried."""
    others = "\n".join(f"def other{i}(x):\n    return x.numel() > {1000 + 7 * i}" for i in range(40))
    (tmp_path / "helper.py").write_text(
        "def far(x):\n    return x.shape[0] % 777 == 0\ndef unused(x):\n    return x > 555\n"
    )
    file = tmp_path / "k.py"
    file.write_text(
        f"from helper import far\nLIMIT = 4242\n{others}\n"
        "def near(x):\n    return x.numel() > LIMIT and far(x)\n"
        "def mine(x, *, out):\n    return near(x)\n"
    )
    found = constants.of(Kernel(Address("gelu", "torch"), file, "mine"))
    assert {*found.sizes[:2]} == {4242, 777} and 1000 in found.sizes and 555 not in found.sizes


def test_a_kernel_may_be_launched_by_a_module_of_the_package(tmp_path):
    """What a launch reads stands in another file, in a folder beside the kernel's."""
    mine, shared = tmp_path / "mine", tmp_path / "shared"
    for folder in (mine, shared):
        folder.mkdir()
    (mine / "k.py").write_text("from shared.launch import launch\ndef f(x, *, out):\n    launch(x, out)\n")
    (shared / "launch.py").write_text(
        "from .sizes import LIMIT\nSOURCE = 'tile.cu'\ndef launch(x, out):\n    return x.numel() > LIMIT\n"
    )
    (shared / "sizes.py").write_text("from shared import launch\nLIMIT = 4242\n")
    (shared / "tile.cu").write_text('#include "tile.cuh"\n__shared__ float tile[1777];\n')
    (shared / "tile.cuh").write_text('#include "tile.cu"\nconstexpr int KEEP = 1999;\n')
    found = constants.of(Kernel(Address("gelu", "cuda"), mine / "k.py", "f"))
    assert {4242, 1777, 1999} <= set(found.sizes)
    assert {1777, 1999} <= set(constants.of(Kernel(Address("gelu", "cuda"), shared / "tile.cu")).sizes)
    assert any("__shared__" in text for text in source.texts(mine / "k.py", tmp_path / "headers"))


def test_an_integer_may_be_a_value(tmp_path):
    file = tmp_path / "k.py"
    file.write_text("def f(x, *, out):\n    return x > 20 and x.shape[0] > 21 and x % 22 == 0 and x < 1024\n")
    assert constants.of(Kernel(Address("gelu", "torch"), file, "f")).values == (20.0,)


def test_constants_are_found_in_cuda_and_ptx(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text("// 12345 in a comment\n#define LIMIT 4096\nif (n > 1 << 15 && x < 3.5f) y = 0x600u;\n")
    ptx = "setp.gt.s32 %p1, %r4,\n  1535; // a; setp.eq.s32 %p, %r, 98;\n"
    ptx += "/* setp.eq.s32 %p, %r, 99; */ setp.lt.u64 %p2, %rd1, 77;\n"
    found = constants.of(Kernel(Address("gelu", "cuda"), file), compared(ptx))
    assert {4096, 32768, 0x600, 1535, 77} <= set(found.sizes) and not {12345, 98, 99} & set(found.sizes)
    assert 3.5 in found.values


@pytest.mark.parametrize("effort", EFFORTS)
def test_what_lies_beyond_a_ragged_end_is_shown(effort):
    """Infinities, NaN, negative values and nearly equal ones, each with all axes at sizes that no block divides."""
    rows = coverage.plan(library.find_op("euclidean_distance"), dtype("fp32"), EFFORTS[effort]).rows
    ragged = [row.workload for row in rows if row.why == "ragged"]
    assert {w.values for w in ragged} == {"special", "lines", "negative", "alike"}
    assert all(math.prod(w.shape(w.op.outputs["out"])) for w in ragged)


@pytest.mark.slow
@pytest.mark.parametrize("where", EFFORTS)
def test_a_thorough_check_on_a_gpu_goes_past_the_indices_of_32_bits(where):
    def past(thorough):
        rows = plan("layernorm", Bounds(thorough=thorough).effort(where)).rows
        return [row.workload for row in rows if row.why == PAST]

    assert not past(thorough=False)
    assert bool(past(thorough=True)) == (where in ("cuda", "cuda, triton"))
    assert all(math.prod(w.shape(w.op.inputs["x"])) > 2**31 for w in past(thorough=True))


@pytest.mark.parametrize("name", ["fp32", "bf16"])
@pytest.mark.parametrize("reason", ["machine", "GPU"])
def test_past_32_bits_only_in_the_narrowest_dtype_and_where_memory_suffices(monkeypatch, name, reason):
    def run(worker, kernel, workload, conditions, prepared=None):
        short = reason == "GPU" and workload.elements > 2**31
        return Outcome(Finding("exception", "no room"), detail={"type": "OutOfMemoryError"}) if short else Outcome()

    monkeypatch.setattr(exploring.trial, "run", run)
    monkeypatch.setattr(Exploration, "_where", lambda explore: "cuda")
    monkeypatch.setattr(exploring, "memory_needed", lambda workload: 2**60 if reason == "machine" else 0)
    ((kernel, op),) = select(["silu/torch"])
    explore = Exploration(kernel, op, dtype(name), None, Pidless(), Conditions(here(kernel), None, dict, {}, 1), bool)
    explore.run(Bounds(thorough=True), host.target())
    left_out = {f"more memory than this {reason} has free"} if name == "bf16" else set()
    assert set(explore.seen.left_out) == left_out and not explore.seen.failure


def test_the_typical_sizes_have_other_attributes_and_values_that_repeat():
    rows = [r.workload for r in plan("softmax").rows if r.why == "at length"]
    (usual,) = [r.workload for r in plan("softmax").rows if r.why == "typical"]
    assert {r.values for r in rows if r.axes == usual.axes} >= {"constant", "sorted"}
    normalised = plan("layernorm").rows
    eps = {dict(r.workload.attributes)["eps"] for r in normalised if r.why == "at length"}
    assert eps == set(library.find_op("layernorm").attributes["eps"].choices)


def test_more_equal_elements_than_16_bits_count_stand_along_each_axis():
    rows = [dict(r.workload.axes) for r in plan("softmax").rows if r.workload.values == "constant"]
    assert {"rows": 1, "cols": 70_001} in rows and {"rows": 70_001, "cols": 1} in rows


@pytest.mark.parametrize("effort", EFFORTS)
def test_sizes_just_beyond_the_typical_ones_and_a_multiple_of_them_are_tried(effort):
    axes, x, out = (
        {"rows": Axis(typical=300), "cols": Axis(typical=1000)},
        {"x": Tensor("rows", "cols")},
        {"out": Tensor("rows")},
    )
    op = Op("total", lambda x: x.sum(1), axes, x, out, independent="rows", source=__file__)
    made = coverage.plan(op, dtype("fp32"), EFFORTS[effort]).rows
    beyond = [dict(r.workload.axes) for r in made if r.why == "beyond typical"]
    if effort in ("cuda", "cuda, triton", "native"):
        assert {"rows": 301, "cols": 1001} in beyond
        assert any(row["cols"] == 1000 and row["rows"] > 1_500 for row in beyond)
    else:
        assert not beyond and not [r for r in made if r.why == "at length"]


def test_an_axis_is_longer_than_a_group_of_blocks_while_the_others_have_several():
    """Blocks in groups of 8 for the cache: the last group is not full, and there is more than one column of blocks."""
    made = plan("int_linear", constants=Constants((64, 32, 8))).rows
    names = library.find_op("int_linear").axes
    found = [dict(r.workload.axes) for r in made if r.why == "constant 512"]
    assert found and all(513 in row.values() for row in found)
    assert any(sum(row[n] > 64 for n in names) > 1 for row in found)


@pytest.mark.parametrize("effort", ["cuda", "native"])
def test_counters_of_eight_bits_overflow_in_every_thread_of_many_blocks(effort):
    """64 blocks of 128 threads, each with a counter of its own: 255 equal indices for each are 2,088,960."""
    inputs = {"base": Tensor("bins"), "index": Tensor("n", dtype="int64", index="bins")}
    axes = {"bins": Axis(min=1), "n": Axis()}
    counts = Op("counts", lambda base, index: base, axes, inputs, {"out": Tensor("bins")}, dtypes=("int32",))
    rows = coverage.plan(counts, dtype("int32"), EFFORTS[effort]).rows
    alike = [dict(r.workload.axes)["n"] for r in rows if r.why == "at length" and r.workload.values == "constant"]
    assert max(alike) > 64 * 128 * 255
    floats = plan("softmax", EFFORTS[effort]).rows
    assert max(r.cost for r in floats if r.why == "at length") <= EFFORTS[effort].typical


def test_there_are_more_blocks_than_one_block_adds_up():
    """Blocks of 2,048 elements leave a sum each, and one block of 1,024 threads adds these up, a thread for each."""
    made = plan("sum", EFFORTS["cuda"], constants=Constants((2048, 256, 1024))).rows
    assert 2048 * 1024 + 1 in [dict(r.workload.axes)["n"] for r in made if r.why == f"constant {2048 * 1024}"]


@pytest.mark.parametrize("constant", [1e-12, 1e-5, 3.5])
def test_some_rows_have_a_norm_near_a_constant_on_either_side(constant):
    near = floats(f"near:{constant}", (60, 256), Range(-1e4, 1e4, dtype("fp32")), torch.Generator().manual_seed(1))
    for turn, norm in enumerate([constant, constant**0.5][: 2 if constant < 1 else 1]):
        norms = near[turn + 1 :: 3].norm(dim=1) / norm
        assert norms.min() < 0.25 and norms.max() > 4 and norms.min() > 1 / 128 and norms.max() < 128
    assert (near == constant).any() and (near == -constant).any()


@pytest.mark.parametrize("effort", [e for e in EFFORTS if "inductor" not in e])
def test_every_value_of_an_attribute_meets_special_values_in_tensors_that_show_them(effort):
    """alpha = 0 with a single special value, which may be a 0 as well, shows nothing of 0 · NaN."""
    rows = [row.workload for row in plan("axpy", EFFORTS[effort]).rows]
    shown = {dict(w.attributes)["alpha"] for w in rows if w.values == "special" and w.elements >= 2 * factors.SHOWING}
    assert shown == set(library.find_op("axpy").attributes["alpha"].choices)


def test_special_values_meet_each_other_and_ordinary_ones():
    within = Range(-9, 9, dtype("fp32"), (math.inf, -math.inf, math.nan))
    drawn = [floats("special", (factors.SHOWING * 4,), within, torch.Generator().manual_seed(n)) for n in range(2)]
    one, other = (values.isfinite() for values in drawn)
    assert (~one & ~other).any() and (~one & other).any() and (one & ~other).any()


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_tensors_lie_at_every_alignment(name):
    """A kernel may look for a multiple of 8 bytes and load 16."""
    number = dtype(name)
    rows = coverage.plan(library.find_op("gelu"), number, NATIVE).rows
    bytes_in = {row.workload.offset * number.itemsize for row in rows if row.workload.elements}
    aligned = {max(n for n in (1, 2, 4, 8, 16) if at % n == 0) for at in bytes_in}
    assert aligned == {n for n in (2, 4, 8, 16) if n >= number.itemsize}


def test_constants_that_only_the_compiler_knows_are_tried_after_the_first_launch(monkeypatch):
    """As a GPU's first launch tells them: here the worker is made to say so."""
    tried = []

    def run(worker, kernel, workload, conditions, prepared=None):
        tried.append(dict(workload.axes)["n"])
        return Outcome(compared=(40_961,) if tried[-1] else ())

    monkeypatch.setattr(exploring.trial, "run", run)
    ((kernel, op),) = select(["gelu/torch"])
    explore = Exploration(kernel, op, dtype("fp32"), None, Pidless(), Conditions(here(kernel), None, dict, {}, 1), bool)
    explore.run(Bounds(), host.target())
    assert {40_960, 40_961, 40_962} <= set(tried) and 40_961 in explore.seen.plan.constants.sizes
    texts = [str(row.workload) for row in explore.seen.tried]
    assert len(set(texts)) == len(texts) >= 100, "nothing is tried twice"


@pytest.mark.parametrize("hurried", [True, False])
def test_a_call_that_the_time_limit_of_the_run_has_ended_is_no_failure(monkeypatch, hurried):
    outcome = Outcome(Finding("timeout", "no answer in 3 s"), lost=True, hurried=hurried)
    monkeypatch.setattr(exploring.trial, "run", lambda *_: outcome)
    ((kernel, op),) = select(["gelu/torch"])
    worker = Pidless()
    worker.close = lambda: None
    explore = Exploration(kernel, op, dtype("fp32"), None, worker, Conditions(here(kernel), None, dict, {}, 1), bool)
    explore.one(Workload.of(op, "n=7,dtype=fp32"))
    assert (explore.seen.failure is None) == hurried
    assert ("the time limit" in explore.seen.left_out) == hurried


class Pidless:
    """A worker that is asked nothing but its process."""

    pid = 1 << 22


@pytest.mark.parametrize("kind", [k for k in VALUES if k not in ("ends", "special", "lines", "beyond")])
@pytest.mark.parametrize("low, high", [(-1e4, 1e4), (-1.0, 1.0), (0.0, 1.0), (0.0, 100.0), (-5.0, -1.0)])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 65)])
def test_every_kind_of_values_stays_within_the_declared_range(kind, low, high, shape):
    import torch

    drawn = floats(kind, shape, Range(low, high, dtype("fp32")), torch.Generator().manual_seed(1))
    assert tuple(drawn.shape) == shape
    assert bool(((drawn >= low) & (drawn <= high)).all())


def test_kinds_of_values_are_what_they_say():
    import torch

    def drawn(kind):
        whole = Range(-1e4, 1e4, dtype("fp32"), (float("nan"), float("-inf")))
        return floats(kind, (64, 256), whole, torch.Generator().manual_seed(3))

    zeros = drawn("zeros")
    whole = (zeros == 0).all(-1)
    assert 0.1 < float(whole.double().mean()) < 0.4, "whole rows"
    assert 0.4 < float((zeros[~whole] == 0).double().mean()) < 0.6
    assert bool((zeros[zeros == 0].signbit()).any()) and not bool(zeros[zeros == 0].signbit().all())
    assert float(drawn("subnormal").abs().max()) <= 2.0**-126
    assert bool((drawn("negative") <= 0).all())
    assert all(row.unique().numel() == 1 for row in drawn("constant"))
    assert drawn("ties").unique().numel() < 16
    lines = drawn("lines")
    assert any(bool((row == float("-inf")).all()) for row in lines) and any(bool(row.isnan().all()) for row in lines)
    half = lines.shape[1] // 2
    held = [(bool((row[:half] == float("-inf")).all()), bool((row[half:] == float("-inf")).all())) for row in lines]
    assert {(True, False), (False, True), (True, True), (False, False)} == set(held), "as masks leave them"
    assert any(int((row == float("-inf")).sum()) == lines.shape[1] - 1 for row in lines), "all but one"
    assert bool((drawn("sorted").diff(dim=1) >= 0).all())
    cancel = drawn("cancel")
    assert bool((cancel.sum(1).abs() < 0.02 * cancel.abs().sum(1)).all())


@pytest.mark.parametrize("number", ["fp32", "bf16", "fp16"])
def test_neighbours_of_powers_of_two_are_the_next_numbers_of_the_format(number):
    """An exponent taken from a rounded logarithm is wrong only there."""
    import torch

    kind = dtype(number)
    drawn = floats("halfway", (64, 256), Range(-1e4, 1e4, kind), torch.Generator().manual_seed(3)).abs()
    assert torch.equal(drawn, drawn.to(kind.torch).double()), "it is a number of the format"
    for power in (0.5, 1.0, 64.0):
        at = torch.tensor(power, dtype=kind.torch)
        below, above = (torch.nextafter(at, torch.tensor(t, dtype=kind.torch)) for t in (0.0, 1e4))
        assert {float(below), power, float(above)} <= set(drawn.flatten().tolist())


@pytest.mark.parametrize("where", ["native", "cuda", "triton-interpret", "numba-sim"])
@pytest.mark.parametrize("name", ["row_scale", "transpose", "conv2d", "mx_linear"])
def test_two_axes_of_the_same_length_are_tried(name, where):
    rows = [dict(r.workload.axes) for r in plan(name, EFFORTS[where]).rows]
    axes = list(library.find_op(name).axes)
    pairs = {(a, b) for a in axes for b in axes if a < b}
    met = {(a, b) for a, b in pairs for sizes in rows if sizes[a] == sizes[b] > 1 and min(sizes.values()) > 0}
    assert met == pairs


@given(st.integers(3, 200))
@settings(max_examples=30, deadline=None)
def test_both_axes_are_as_long_as_a_constant_of_the_kernel(constant):
    rows = coverage.plan(library.find_op("transpose"), dtype("fp32"), NATIVE, 0, Constants((constant,))).rows
    assert {(constant, constant), (2 * constant, 2 * constant)} <= {tuple(dict(r.workload.axes).values()) for r in rows}


@pytest.mark.parametrize("where", sorted(EFFORTS))
@pytest.mark.parametrize("name", OPS)
def test_every_kind_of_values_is_tried_however_short_the_plan(name, where):
    tried = {row.workload.values for row in plan(name, EFFORTS[where]).rows}
    assert set(factors.kinds(library.find_op(name), dtype("fp32"))) <= tried
