"""What cannot be launched, is the same kernel twice, or is poor by its code, is not measured; the record says why."""

from assay.tune.evidence import Static
from assay.tune.pruning import pruned
from assay.tune.space import key
from assay.tune.static import Compiled

DEFAULT = {"BLOCK": 256}


def compiled(block, *, problem="", excess="", **static):
    figures = {"registers": 32, "spills": 0, "warps": 64, "estimate": 1e-5, "code": f"code {block}"} | static
    return Compiled({"BLOCK": block}, Static(**figures) if not problem else None, problem, excess)


def reason(result, block):
    return result.reasons.get(key({"BLOCK": block}), "")


def test_a_configuration_that_the_device_would_refuse_is_never_launched():
    large = compiled(1, excess="250000 bytes of shared memory in a block, sm_90 has 232448")
    broken = compiled(2, problem="kernel.cu(3): error: too many\nmore lines")
    result = pruned([large, broken, compiled(256)], DEFAULT)
    assert [c.configuration for c in result.ordered] == [DEFAULT]
    assert "250000 bytes of shared memory" in reason(result, 1)
    assert reason(result, 2) == "it does not build: kernel.cu(3): error: too many"


def test_of_configurations_with_the_same_code_and_launch_one_is_measured():
    result = pruned([compiled(1, code="same"), compiled(256, code="same"), compiled(3)], DEFAULT)
    assert reason(result, 1) == "the same code and launch as BLOCK=256"
    assert result.same_as == {key({"BLOCK": 1}): DEFAULT} and len(result.ordered) == 2


def test_spills_few_warps_and_long_estimates_are_reasons_where_others_do_better():
    poor = [compiled(1, spills=64), compiled(2, warps=2), compiled(3, estimate=5e-5)]
    result = pruned([*poor, compiled(256), compiled(5, estimate=0.9e-5)], DEFAULT)
    assert [c.configuration["BLOCK"] for c in result.ordered] == [5, 256]
    assert "spills 64 bytes" in reason(result, 1)
    assert "holds 2 of its warps" in reason(result, 2)
    assert "5.6 times as long" in reason(result, 3)


def test_the_default_is_measured_however_poor_it_looks():
    result = pruned([compiled(256, spills=64, warps=1), compiled(1)], DEFAULT)
    assert DEFAULT in [c.configuration for c in result.ordered]
    assert not pruned([compiled(1, spills=8), compiled(2, spills=16)], DEFAULT).reasons  # all of them spill
