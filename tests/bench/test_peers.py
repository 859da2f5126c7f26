"""A peer is run as its best user would run it, and what was chosen is in the record."""

import pytest

import assay
from assay.backends import backend, where_timed
from assay.backends.base import Level
from assay.bench.planning import Options, plan
from assay.bench.spent import Spent
from assay.catalog import library
from assay.catalog.select import select
from assay.check import judge
from assay.check.oracle import oracle
from assay.inputs import generate
from assay.workload import Workload

SMALL = {"workload": "rows=64,cols=64,dtype=fp32", "rounds": 5, "budget": 0.2, "threads": 1}

PEER = """
import torch
from assay import kernel

@kernel("softmax", backend="torch", variant="theirs", {declared}returns=True)
def theirs(x):
    return torch.softmax(x, -1) * {factor}
"""


@pytest.mark.slow
def test_a_less_accurate_peer_is_timed_and_marked(tmp_path):
    file = tmp_path / "peer.py"
    file.write_text(PEER.format(declared='needs="torch", ', factor=1 + 2e-6))
    record = next(r for r in assay.bench(file, **SMALL) if r.kernel == "softmax/torch:theirs")
    assert record.status in ("pass", "inconclusive") and record.median
    evidence = record.evidence
    assert evidence["less_accurate"] and evidence["peer"].startswith("torch ")
    if record.status == "pass":
        assert "less accurate" in record.reason


@pytest.mark.slow
def test_our_own_kernels_have_no_such_exemption(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(PEER.format(declared="", factor=1 + 2e-6))
    record = next(r for r in assay.bench(file, **SMALL) if r.kernel == "softmax/torch:theirs")
    assert record.status == "fail" and "a timed call computed something else" in record.reason


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.01, 0.0])
def test_a_peer_that_is_wrong_fails_like_any_kernel(tmp_path, factor):
    file = tmp_path / "wrong.py"
    file.write_text(PEER.format(declared='needs="torch", ', factor=factor))
    for verb in (assay.bench(file, **SMALL), assay.check(file, dtypes=("fp32",), workloads=12)):
        record = next(r for r in verb if r.kernel == "softmax/torch:theirs")
        assert record.status == "fail", record.reason


@pytest.mark.slow
def test_torch_compile_is_timed_for_static_shapes_and_checked_for_dynamic_ones():
    ((kernel, _),) = select(["softmax/inductor"])
    assert where_timed(kernel).mode == "static"
    records = {r.kernel: r for r in assay.bench("softmax/inductor", **SMALL)}
    assert records["softmax/inductor"].evidence["peer"] == "torch.compile, static shapes, mode default"
    assert backend("inductor").chosen("native", "") == "torch.compile, dynamic shapes, mode default"
    assert "max-autotune" in backend("inductor").chosen("static", "max_autotune")


def test_every_op_has_an_autotuned_baseline_which_needs_a_gpu():
    names = {k.name for k in library.kernels()}
    assert {f"{op}/inductor:max_autotune" for op in library.ops()} - names <= {"attention/inductor:max_autotune"}
    here = backend("inductor").availability("max_autotune")
    assert here.device == "cuda" or (here.level is Level.MISSING and "GPU" in here.fix)


def test_plain_torch_is_timed_without_a_copy_that_no_user_makes():
    derived = [k for k in library.kernels() if k.address.backend == "torch" and k.file is None]
    assert derived and all(k.returns for k in derived)


IDENTITY = """
import torch
from assay import Axis, Tensor, op

@op(axes={"n": Axis(typical=4096)}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n"), "twice": Tensor("n")})
def views(x):
    return x.view(-1), x * 2
"""


def test_a_reference_that_returns_a_view_of_its_input_is_copied(tmp_path):
    file = tmp_path / "views.py"
    file.write_text(IDENTITY)
    records = list(assay.check(f"{file}:views/torch", dtypes=("fp32",), workloads=10))
    assert [str(r.status) for r in records] == ["pass"], records[0].reason


def test_quick_means_five_rounds_and_one_clock():
    quick = Options().quicker()
    assert quick.rounds == 5 and not quick.second_clock and quick.budget < Options().budget


def test_time_is_counted_once():
    spent, clock = Spent(), iter(range(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assay.bench.spent.time.perf_counter", lambda: next(clock))
        with spent.on("time"), spent.on("judge"):
            pass
        with spent.on("time"):
            pass
    assert (spent.seconds["time"], spent.seconds["judge"]) == (2 + 1, 1)
    assert str(spent) == "timing 3.0 s, judging timed calls 1.0 s"


def test_kernels_are_compared_on_the_same_results():
    """Plain PyTorch gives no mean and rstd, so the others do not compute them beside it."""
    (beside,) = plan(["layernorm/njit"], Options(workload="rows=8,cols=64,dtype=fp32"))
    assert beside.workload.without == ("mean", "rstd") and "layernorm/torch" in {k.name for k in beside.kernels}
    (alone,) = plan(["layernorm/njit", "layernorm/triton"], Options(workload="rows=8,cols=64,dtype=fp32", against=()))
    assert alone.workload.without == ()
    (gradient,) = plan(["layernorm_backward/triton"], Options(workload="rows=8,cols=64,dtype=fp32"))
    assert gradient.workload.without == (), "its reference computes all of them"


@pytest.mark.parametrize(
    ("name", "shape", "excused"), [("softmax", "rows=64,cols=64", True), ("transpose", "rows=8,cols=8", False)]
)
def test_results_are_less_accurate_only_where_an_op_rounds(name, shape, excused, one_thread):
    """An op that moves data promises its bits; large workloads are judged in slices by the same rule."""
    workload = Workload.of(library.find_op(name), f"{shape},dtype=fp32")
    drawn = generate(workload)
    truth = oracle(workload, drawn)
    off = {n: (v * (1 + 2e-6)).float() for n, v in truth.exact.items()}
    whole = judge.judge(off, judge.Measures(truth, {n: v.float() for n, v in truth.exact.items()}, {})).finding
    sliced = judge.judge_maximum(off, truth, {}).finding
    assert whole.detector == sliced.detector == "values"
    assert whole.less_accurate == sliced.less_accurate == excused
