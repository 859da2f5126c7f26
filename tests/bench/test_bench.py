"""Times one can believe: the statistics, the sweeps, and real kernels timed on the CPU."""

import itertools
import json
import math
import random
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import assay
from assay.bench import sweep
from assay.bench.clocks import second_clock
from assay.bench.limit import roofline
from assay.bench.planning import Options, plan
from assay.bench.sensors import state
from assay.bench.statistics import estimate, of_rounds, rank, ratio
from assay.catalog import library
from assay.catalog.select import select
from assay.dtype import dtype
from assay.errors import UsageError
from assay.machine.model import Figure, Model
from assay.machine.model import read as read_model
from assay.worker import measure
from assay.worker.questions import Activity
from assay.workload import Workload

GELU = library.ops()["gelu"]
ROOT = Path(__file__).parents[2]


# Statistics


@given(st.integers(6, 60))
def test_what_is_left_covers_the_median_with_95_percent_and_one_less_would_not(count):
    def coverage(out):
        return 1 - 2 * sum(math.comb(count, i) for i in range(out + 1)) / 2**count

    assert coverage(rank(count)) >= 0.95 > coverage(rank(count) + 1)


def test_intervals_cover_the_true_median_over_offsets_between_rounds():
    rng, covered = random.Random(7), 0
    for _ in range(400):
        rounds = [
            [1 + offset + rng.gauss(0, 0.001) for _ in range(5)] for offset in (rng.gauss(0, 0.01) for _ in range(10))
        ]
        low, high = estimate(rounds).interval
        covered += low <= 1 <= high
    assert covered >= 0.93 * 400  # a sample's own jitter, 0.001, would cover it in one of five


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=40))
def test_the_median_lies_inside_its_interval(values):
    found = of_rounds(values)
    assert found.interval[0] <= found.median <= found.interval[1]


@given(st.floats(0.5, 4))
def test_a_ratio_is_taken_round_by_round(factor):
    rng = random.Random(1)
    drift = [rng.uniform(1, 2) for _ in range(10)]  # common to both, larger than any difference
    found = ratio([[factor * d] for d in drift], [[d] for d in drift])
    assert found.median == pytest.approx(factor) and found.spread < 1e-9


# Sweeps


@pytest.mark.parametrize(
    "text, sizes",
    [("1024..8192:x2", [1024, 2048, 4096, 8192]), ("0..10:+5", [0, 5, 10]), ("3,5,7", [3, 5, 7]), ("2..4", [2, 3, 4])],
)
def test_sizes_are_written_as_ranges(text, sizes):
    assert sweep.axis_values(text) == sizes


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(2, 9))
def test_a_multiplied_range_stays_inside_its_ends(first, more, step):
    values = sweep.axis_values(f"{first}..{first + more}:x{step}")
    assert values[0] == first and all(first <= v <= first + more for v in values)
    assert all(b == a * step for a, b in itertools.pairwise(values))


@given(st.text(max_size=12))
@example("¹")
@example("9" * 5000)
def test_no_text_crashes_the_reader_of_sizes(text):
    try:
        assert all(isinstance(v, int) for v in sweep.axis_values(text))
    except UsageError as error:
        assert error.fix


@pytest.mark.parametrize("text", ["", "x", "5..3", "0..8:x2", "1..8:x1", "-3", "1..9:+0", "1...4"])
def test_a_bad_range_is_wrong_use(text):
    with pytest.raises(UsageError):
        sweep.axis_values(text)


@pytest.mark.parametrize(
    ("text", "number", "fixes"),
    [
        ("1..4096", 4096, ("1..4096:x2 (13 sizes) or 1..4096:+256", "1..4096:+1")),
        ("1000..1064", 65, ("write one: 1000..1064:+5",)),
        ("8,0..99", 100, ("write one: 0..99:+7",)),
        ("1..1000000", 1000000, ("1..1000000:x2 (20 sizes)",)),
    ],
)
def test_a_range_of_many_sizes_needs_a_step(text, number, fixes):
    """Each size is a workload: an hour of timing by a typing error."""
    with pytest.raises(UsageError, match=f"without a step is {number} sizes") as refused:
        sweep.axis_values(text)
    for fix in fixes:
        assert fix in refused.value.fix
        suggested = fix.rpartition(" ")[2] if fix.startswith("write") else fix.partition(" ")[0]
        assert len(sweep.axis_values(suggested)) <= 20 or suggested == "1..4096:+1"
    assert len(sweep.axis_values("1..64")) == 64


def test_a_sweep_is_the_product_of_axes_and_dtypes():
    op = library.ops()["softmax"]
    found = sweep.workloads(op, ["bf16", "fp32"], {"rows": [1, 2], "cols": [8]})
    assert [(w.sizes.rows, w.sizes.cols, str(w.dtype)) for w in found] == [
        (1, 8, "bf16"),
        (2, 8, "bf16"),
        (1, 8, "fp32"),
        (2, 8, "fp32"),
    ]
    with pytest.raises(UsageError, match="cols=0 is outside"):
        sweep.workloads(op, ["fp32"], {"rows": [1, 2], "cols": [0, 8]})
    with pytest.raises(UsageError, match="no axis 'n'"):
        sweep.workloads(op, ["fp32"], {"n": [1]})


# Limits and clocks


def model(**figures):
    return Model("one", "measured", "r", "t", {k.replace("_", "."): Figure(v, "") for k, v in figures.items()})


def test_the_floor_is_bytes_over_the_fastest_stream_and_holds_only_beyond_the_cache():
    workload = Workload.of(GELU, "n=1000000,dtype=fp32")
    device = model(dram_read=8e9, dram_copy=4e9, vector_fp32=1e15)
    found = roofline(workload, device, cache=1 << 20, seconds=2e-3)
    assert found.bound == "memory" and found.floor == found.seconds == pytest.approx(8e6 / 8e9)
    assert found.share == pytest.approx(0.5)
    assert roofline(workload, device, 4 << 20, 1.0).floor == 0
    assert roofline(workload, None, 0, 1.0) is None


def test_arithmetic_is_a_limit_but_no_floor_unless_it_is_irreducible():
    workload = Workload.of(GELU, "n=1000000,dtype=fp32")
    found = roofline(workload, model(dram_read=8e12, vector_fp32=1e9), 1 << 10, 1.0)
    assert found.bound == "compute" and found.floor == pytest.approx(8e6 / 8e12)
    assert found.floor < found.seconds


def seen(seconds, launches=1.0, streams=1):
    return Activity(seconds, launches, {}, streams)


@pytest.mark.parametrize(
    "events, activity, held, why",
    [
        (10.2e-6, seen(10e-6), True, ""),
        (102e-6, seen(100e-6), True, ""),
        (5e-6, seen(3e-6), True, "launch-bound: 2.00 µs"),
        (50e-6, seen(40e-6, 3), True, "several kernels: 3 a call"),
        (5e-6, seen(50e-6, 1, 2), True, "hidden stream"),
        (90e-6, seen(20e-6), False, "host sync"),
        (20e-6, seen(30e-6), True, "overlap"),
        (20e-6, seen(0, 0), True, "no kernel"),
    ],
)
def test_two_clocks_that_disagree_are_explained(events, activity, held, why):
    found = second_clock(events, activity, held)
    assert found.agrees == (why == "") and why in found.why


def test_a_passing_throttle_is_told_from_a_state():
    capped = {"celsius": 60, "watts": 700, "throttle": ["software power cap"]}
    free = {"celsius": 50, "watts": 300, "throttle": []}
    assert state([capped] * 5 + [free])["throttle"] == ["software power cap"]
    found = state([capped] + [free] * 5)
    assert found["throttle"] == [] and found["throttle_passing"] == ["software power cap"]
    assert (found["celsius"], found["watts"]) == (60, 700) and state([]) == {}


# Real kernels


@pytest.fixture
def quick():
    return {"rounds": 5, "budget": 0.1, "threads": 1, "workload": "n=20000,dtype=fp32"}


def test_a_record_holds_its_samples_by_round_and_what_they_were_compared_with(quick, large_buffers):
    records = {r.kernel: r for r in assay.bench("silu/torch", "silu/njit", **quick)}
    for name in ("silu/torch", "silu/njit"):
        record = records[name]
        assert record.status == "pass", record.reason
        assert len(record.samples) >= 5 and all(record.samples) and record.interval[0] <= record.median
        evidence = record.evidence
        assert evidence["device"] == "cpu" and evidence["threads"] == 1 and evidence["cold_enough"]
        assert evidence["bytes"] == 160_000 and evidence["gbps"] == pytest.approx(160_000 / record.median / 1e9)
        assert {"hot", "call", "copy", "share_of_copy", "baseline", "speedup"} <= set(evidence)
        assert record.to_dict()["median"] == record.median
    assert records["silu/torch"].evidence["speedup"]["median"] == 1


CHEAT = """
import torch
from assay import kernel

calls = 0

@kernel("gelu", backend="torch")
def mine(x, *, out):
    global calls
    calls += 1
    if calls < {honest}:
        out.copy_(torch.nn.functional.gelu(x))
"""


@pytest.mark.slow
def test_a_kernel_that_stops_computing_once_it_is_timed_fails(tmp_path, quick):
    file = tmp_path / "cheat.py"
    file.write_text(CHEAT.format(honest=4))
    found = [r for r in assay.bench(file, **quick) if r.source["file"] == str(file)]
    assert found[0].status == "fail" and found[0].reason.startswith("unwritten: ")
    assert found[0].median is None


def test_a_crash_fails_one_kernel_and_the_others_are_timed(tmp_path, quick):
    file = tmp_path / "crash.py"
    head = 'import os\nfrom assay import kernel\n\n@kernel("gelu", backend="torch")\n'
    file.write_text(f"{head}def mine(x, *, out):\n    os.abort()\n")
    records = {r.kernel: r for r in assay.bench(file, **quick)}
    assert "SIGABRT" in records["gelu/torch:mine"].reason and records["gelu/torch"].status == "pass"


def test_what_cannot_be_timed_here_is_said(quick):
    from assay.host import runs_on_gpu

    if runs_on_gpu():
        pytest.skip("here is a GPU")
    records = {r.kernel: r for r in assay.bench("gelu/cuda", "gelu/triton", **quick)}
    assert "interpreter" in records["gelu/triton"].reason
    assert records["gelu/cuda"].status == "skipped" and "GPU" in records["gelu/cuda"].reason


def test_on_an_h200_bench_agrees_with_ncu_or_says_why_and_with_itself():
    """results/h200/ncu.json, by tools/against_ncu.py."""
    cells = json.loads((ROOT / "results" / "h200" / "ncu.json").read_text())["cells"]
    kernels = {c["kernel"] for c in cells}
    assert len(kernels) >= 10 and len({k.partition("/")[2] for k in kernels}) >= 3
    assert min(c["bytes"] for c in cells) <= 2**20 and max(c["bytes"] for c in cells) >= 2**32
    for c in cells:
        assert abs(c["bench"] - c["ncu"]) <= max(0.03 * c["ncu"], 1e-6) or c["why"] not in ("", "unexplained"), c
        assert c["bench"] < 20e-6 or abs(c["again"] / c["bench"] - 1) <= 0.01, c


def test_the_h200_model_is_within_physics():
    """results/h200/machine.json."""
    model = read_model(ROOT / "results" / "h200" / "machine.json")
    assert model.value("dram.copy") == pytest.approx(4.25e12, rel=0.03)
    bf16 = model.figures["tensor.wgmma.bf16"]
    assert 766e12 <= bf16.value <= 4096 * model.facts["sms"] * bf16.clock_mhz * 1e6
    assert all(model.figures[f"latency.{level}"].published for level in ("shared", "l1", "l2", "dram"))


# Peers


RETURNS = """
import torch
from assay import kernel

@kernel("softmax", backend="torch", returns=True)
def mine(x):
    return torch.softmax(x, -1)

@kernel("softmax", backend="torch", returns=True)
def stops(x, seen=[]):
    seen.append(x)
    return torch.softmax(x, -1) if len(seen) < 6 else torch.zeros_like(x)
"""


def test_what_a_kernel_returns_is_judged_too(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(RETURNS)
    found = {r.kernel: r for r in assay.bench(file, workload="rows=64,cols=64,dtype=fp32", rounds=5, budget=0.5)}
    assert found["softmax/torch:mine"].status == "pass", found["softmax/torch:mine"].reason
    assert found["softmax/torch:stops"].status == "fail"
    assert "a timed call computed something else" in found["softmax/torch:stops"].reason


def test_a_peer_that_is_not_installed_is_skipped_with_the_command_that_brings_it():
    small = {"workload": "rows=8,cols=64,dtype=fp32", "rounds": 5, "budget": 0.5}
    records = list(assay.bench("rmsnorm/triton:liger", "rmsnorm/cuda:quack", **small))
    skipped = {r.kernel: r.reason for r in records if r.status == "skipped"}
    assert "pip install liger-kernel" in skipped["rmsnorm/triton:liger"]
    assert "pip install quack-kernels" in skipped["rmsnorm/cuda:quack"]


def test_a_kernel_that_promises_less_is_asked_for_less():
    ((kernel, op),) = select(["layernorm/triton:liger"])
    assert op.axes["cols"].max == 65536 and not op.inputs["weight"].optional and not op.inputs["bias"].optional
    assert library.ops()["layernorm"].inputs["weight"].optional
    (long,) = plan(["layernorm"], Options(workload="rows=2,cols=65537,dtype=bf16"))
    assert kernel.name not in {k.name for k in long.kernels} and "layernorm/triton" in {k.name for k in long.kernels}
    (bare,) = plan(["layernorm"], Options(workload="rows=2,cols=64,dtype=bf16,without=weight"))
    assert kernel.name not in {k.name for k in bare.kernels}
    with pytest.raises(UsageError, match="not optional"):
        list(assay.check("layernorm/triton:liger", workload="rows=2,cols=64,dtype=fp32,without=weight"))


FEW_VALUES = """
import torch
from assay import Axis, Tensor, kernel, op

@op(axes={"n": Axis(typical=4096)}, inputs={"x": Tensor("n", dtype="uint8")},
    outputs={"out": Tensor("n", dtype="uint8")},
    dtypes=("fp32",))
def same(x):
    return x * 0 + %d

@kernel("same", backend="torch")
def mine(x, *, out):
    out.fill_(%d)
"""


@pytest.mark.slow
def test_a_result_that_is_the_poison_itself_is_not_taken_for_unwritten(tmp_path, quick):
    """Every output of one byte is a pattern that unwritten memory may hold."""
    for pattern in dtype("uint8").poisons[:1]:
        file = tmp_path / f"same{pattern}.py"
        file.write_text(FEW_VALUES % (pattern, pattern))
        found = list(assay.bench(file, **{**quick, "workload": "n=4096,dtype=fp32", "against": ()}))
        (record,) = found
        assert record.status in ("pass", "inconclusive"), record.reason  # inconclusive: the machine was busy
        assert not record.detector


@pytest.mark.parametrize(("later", "calls"), [(0.04, 1), (0.0, 5)], ids=["long", "long at first"])
def test_a_long_call_on_a_cpu_is_warmed_up_once_in_later_rounds(monkeypatch, later, calls):
    """A kernel whose calls are no longer long is warmed up like any other."""
    made, seconds = [], [0.04]

    def call(i):
        made.append(i)
        time.sleep(seconds[0])

    def kernel(request, buffers):
        call(-1)  # by the backend's rules
        return call, []

    monkeypatch.setattr(measure, "_kernel", kernel)
    monkeypatch.setattr(measure, "_long", {})
    request = SimpleNamespace(round=SimpleNamespace(capture=False), workload="n=1")
    buffers = SimpleNamespace(device="cpu")
    first = measure._warm(request, buffers)
    assert len(made) == 3 and first.guess >= 0.04
    made.clear()
    seconds[0] = later
    second = measure._warm(request, buffers)
    assert len(made) == calls and (second.guess >= 0.03) is (calls == 1)
