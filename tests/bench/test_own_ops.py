"""An op of one's own is timed against PyTorch: its reference, eager and compiled, is its baseline."""

import json

import pytest

from assay.bench.planning import Options, plan
from assay.errors import UsageError
from own_op import KERNEL, OP

QUICK = ("--workload", "rows=64,cols=64,dtype=fp32", "--rounds", "5", "--budget", "0.1")


@pytest.fixture
def mine(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write("mine.py", OP + KERNEL.format(name="mine"))


def planned(*what, **settings):
    (one,) = plan(what, Options(**settings))
    names = {k.identity: k.name for k in one.kernels}
    return list(names.values()), names.get(one.baseline)


def test_torch_is_the_baseline_unless_another_is_named(mine):
    assert planned(mine) == (["row_sum/torch:mine", "row_sum/torch"], "row_sum/torch")
    both = planned(mine, against=("inductor", "torch"))
    assert both == (["row_sum/torch:mine", "row_sum/inductor", "row_sum/torch"], "row_sum/inductor")
    assert planned(mine, against=("row_sum/inductor",))[1] == "row_sum/inductor"
    assert planned(mine, against=()) == (["row_sum/torch:mine"], None)


def test_a_kernel_of_ones_own_can_be_the_baseline(mine, write):
    other = write(
        "other.py", 'from assay import kernel\n@kernel("mine.py:row_sum", backend="torch")\ndef other(x, *, out): ...'
    )
    kernels, baseline = planned(mine, other, against=("row_sum/torch:other",))
    assert kernels == ["row_sum/torch:mine", "row_sum/torch:other"] and baseline == "row_sum/torch:other"


def test_an_op_called_like_the_librarys_is_timed_against_its_own_reference(write):
    own = write("own.py", (OP + KERNEL.format(name="mine")).replace("row_sum", "gelu"))
    (one,) = plan([own], Options())
    assert one.baseline == f"gelu/torch in {own}"


@pytest.mark.parametrize("name", ["triton", "row_sum/cuda", "gelu/torch"])
def test_a_baseline_that_does_not_exist_is_refused_with_those_that_do(name, mine):
    with pytest.raises(UsageError, match=f"--against {name}: there is no such kernel") as refused:
        plan([mine], Options(against=(name,)))
    offered = "row_sum/torch:mine, row_sum/torch, row_sum/inductor, row_sum/inductor:max_autotune"
    assert refused.value.fix == f"one of: {offered}"


@pytest.mark.slow
def test_a_speedup_over_the_reference_is_measured_and_replayed(mine, assay, tmp_path):
    """Over torch.compile too: docs/first-kernel.md."""
    done = assay("bench", "mine.py", "--against", "torch", *QUICK, "--json", cwd=tmp_path)
    records = {r["kernel"]: r for r in json.loads(done.stdout)["records"]}
    assert set(records) == {"row_sum/torch:mine", "row_sum/torch"}
    assert all(r["evidence"]["baseline"] == "row_sum/torch" and r["evidence"]["speedup"] for r in records.values())
    replay = records["row_sum/torch"]["replay"]
    assert replay.startswith("assay bench mine.py:row_sum/torch --workload rows=64") and "--against torch" in replay


@pytest.mark.slow
def test_run_times_a_kernel_beside_its_baseline_and_reports_on_both(mine, assay, tmp_path):
    done = assay("run", "mine.py", "--workloads", "4", *QUICK[2:], "--json", cwd=tmp_path)
    found = {(r["verb"], r["kernel"]) for r in json.loads(done.stdout)["records"]}
    assert found == {("check", "row_sum/torch:mine"), ("bench", "row_sum/torch:mine"), ("bench", "row_sum/torch")}


def test_a_bare_cuda_file_has_the_baselines_of_its_op(mine, write):
    write("own.cu", "// assay: f<T><<<1, 1>>>(x, out, rows, cols)\n")
    kernels, baseline = planned("own.cu", op="mine.py:row_sum")
    assert kernels == ["row_sum/cuda:own", "row_sum/torch"] and baseline == "row_sum/torch"
