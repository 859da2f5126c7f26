"""Without a GPU configurations are compiled for a target, pruned and ranked; nothing passes that did not run."""

import json

import pytest

from assay import host
from assay.bench.sensors import Sensors
from assay.errors import UsageError
from assay.record import Status
from assay.tune import quiet
from assay.tune.evidence import TuneEvidence
from assay.tune.planning import Options, plan
from assay.tune.verb import run

pytestmark = pytest.mark.skipif(host.tool("nvdisasm") is None, reason="no nvdisasm")


def test_a_gpu_kernel_is_ranked_for_a_target_and_the_records_say_that_nothing_ran(assay):
    done = assay("tune", "silu/cuda", "--target", "sm_90", "--json", env={"ASSAY_STORE": "none"})
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)["records"]
    assert {r["verb"] for r in records} == {"tune"} and {r["status"] for r in records} == {"compiled"}
    *configurations, choice = records
    assert [r["evidence"]["place"] for r in configurations] == [1, 2, 3]
    static = configurations[0]["evidence"]["static"]
    assert static["registers"] > 8 and static["spills"] == 0 and static["occupancy"] == 1 and static["estimate"] > 5e-6
    assert static["model"] == "NVIDIA H200, published"
    assert "nothing was run" in choice["reason"] and choice["evidence"]["choice"]["winner"]


def test_configurations_of_one_estimate_are_named_and_the_default_is_recommended_if_it_is_among_them():
    options = Options(target="sm_90", parameters={"threads": 256, "vectors": 4, "store": "plain"})
    *_, choice = run(plan(["gelu/cuda"], options), options)
    made = TuneEvidence.of(choice).choice
    assert len(made.ties) == 2 and made.winner == made.default
    assert "3 have the smallest estimate: threads=256, vectors=4, load=plain" in choice.reason
    assert "recommended: the default; nothing was run" in choice.reason


def test_a_configuration_that_no_device_would_launch_is_pruned_with_the_number():
    options = Options(target="sm_90", parameters={"threads": 2048})
    pruned, choice = run(plan(["silu/cuda"], options), options)
    assert pruned.status is Status.SKIPPED and "2048 threads in a block" in TuneEvidence.of(pruned).pruned
    assert choice.failed and "none of 1 configurations" in choice.reason


SEVERAL = """
import os
from assay import kernel
from assay.backends.cuda import Source

source = Source("several.cu")

@kernel("gelu", tune={"way": ["first", "crash", "second", "third"]})
def gelu(x, *, out, way="second"):
    if way == "crash":
        os.abort()
    source[f"copy<{dict(first=1, second=1 + 1, third=3)[way]}>"](1, 128, x, out)
"""
COPY = """
template <int WAY> __global__ void copy(const float* x, float* y) {
  y[threadIdx.x] = WAY == 3 ? x[threadIdx.x] : 2 * x[threadIdx.x];
}
"""


def test_a_build_that_crashes_is_one_configurations_fault_and_equal_code_under_two_names_is_one_kernel(write):
    """All are built in the same process, one after the other."""
    write("several.cu", COPY)
    file = write("several.py", SEVERAL)
    options = Options(target="sm_90", dtypes=("fp32",))
    *configurations, choice = run(plan([file], options), options)
    of = {r.evidence["parameters"]["way"]: r for r in configurations}
    assert "does not build: the build ended without an answer" in of["crash"].reason and "SIGABRT" in of["crash"].reason
    assert TuneEvidence.of(of["first"]).same_as == {"way": "second"}  # the default is measured in its place
    assert of["second"].status is of["third"].status is Status.COMPILED and choice.status is Status.COMPILED


@pytest.mark.parametrize(
    ("what", "settings", "message"),
    [
        ("gelu/njit", {"target": "sm_90"}, "gelu/njit is not compiled for sm_90"),
        ("gelu/torch", {}, "gelu/torch declares no tunables"),
        ("gelu/njit", {"strategy": "best"}, "no strategy called 'best'"),
        ("gelu/njit", {"parameters": {"warps": 4}}, "gelu/njit has no tunable 'warps'"),
        ("gelu/njit", {"parameters": {"threads": 4096, "parallel": True}}, "no configuration of gelu/njit fits"),
        ("gelu/njit", {"workload": "n=8,dtype=fp32,inplace=1"}, "in-place"),
        ("gelu/njit", {"rounds": 3}, "3 rounds are too few"),
    ],
)
def test_what_cannot_be_tuned_is_refused_with_the_reason(what, settings, message):
    with pytest.raises(UsageError, match=message) as problem:
        plan([what], Options(**settings))
    assert problem.value.fix


def test_a_gpu_that_is_in_use_or_hot_is_refused(monkeypatch):
    gpu = host.Gpu("NVIDIA H200", None, 0, "", 132)
    monkeypatch.setattr(host, "gpu", lambda: gpu)
    monkeypatch.setattr(quiet, "_BETWEEN", 0.0)
    monkeypatch.setattr(Sensors, "busy", lambda self: 60)
    with pytest.raises(UsageError, match="NVIDIA H200 is in use: it was busy 60 %"):
        quiet.refuse_busy("cuda")
    quiet.refuse_busy("cpu")
    monkeypatch.setattr(Sensors, "busy", lambda self: None)
    monkeypatch.setattr(Sensors, "read", lambda self: {"throttle": ["hardware thermal slowdown"]})
    with pytest.raises(UsageError, match="held down by hardware thermal slowdown"):
        quiet.refuse_busy("cuda")
    monkeypatch.setattr(Sensors, "read", lambda self: {"throttle": ["software power cap"]})
    quiet.refuse_busy("cuda")
