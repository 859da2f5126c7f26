"""A launch that no GPU can start is refused without a GPU."""

import pytest

import assay
from assay import host
from assay.backends import launch_limits
from assay.store.current import current_records
from assay.target import Target

needs_nvrtc = pytest.mark.skipif(not host.has("cuda.bindings"), reason="no NVRTC here: pip install cuda-bindings")


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ({"block": (2048,)}, "2048 threads a block"),
        ({"block": (32, 32, 2)}, "2048 threads a block"),
        ({"block": (2, 2, 128)}, "a block of (2, 2, 128)"),
        ({"block": (0,)}, "a block of (0,)"),
        ({"grid": (1, 65536)}, "a grid of (1, 65536)"),
        ({"grid": (1 << 31,)}, "a grid of"),
        ({"shared": (227 << 10) + 1}, "bytes of shared memory"),
        ({"block": (1024,), "registers": 72}, "1024 threads of 72 registers"),
        ({"cluster": 17}, "clusters of 17 blocks"),
        ({"cluster": 2, "target": Target("sm_80")}, "clusters of 2 blocks"),
    ],
)
def test_what_is_too_large_is_named_with_the_limit(launch, words):
    usual = {"grid": (1,), "block": (256,), "shared": 0, "registers": 32, "target": Target("sm_90")}
    problem = launch_limits.problem("f<float>", **usual | launch)
    assert words in problem and "f<float>" in problem
    assert any(limit in problem for limit in ("→ at most", "at least", "only from sm_90 on"))


@pytest.mark.parametrize(
    "launch",
    [
        {"block": (1024,), "registers": 64},
        {"block": (16, 16, 4)},
        {"grid": ((1 << 31) - 1, 65535, 65535)},
        {"grid": (32,), "cluster": 16},
        {"shared": 227 << 10},
        {"shared": 1 << 20, "target": Target("sm_110")},  # not known: not judged
    ],
)
def test_what_fits_is_launched(launch):
    usual = {"grid": (1,), "block": (256,), "shared": 0, "registers": 32, "target": Target("sm_90a")}
    assert launch_limits.problem("f", **usual | launch) == ""


KERNEL = """// assay: f<T><<<%s>>>(x, out, n)
#include <assay/vector.cuh>
template <typename T> __global__ void f(const T* x, T* y, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
"""


@pytest.mark.skipif(host.runs_on_gpu(), reason="it runs here, and the driver refuses it")
@needs_nvrtc
@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ("cdiv(n, 256), 2048", "2048 threads a block"),
        ("cdiv(n, 256), 256, 300000", "300000 bytes of shared memory"),
        ("n / 256, 256", "launches nothing, and its output has elements"),
    ],
)
def test_check_refuses_it(tmp_path, configuration, words):
    file = tmp_path / "f.cu"
    file.write_text(KERNEL % configuration)
    (record,) = assay.check(file, op="gelu", dtypes="fp32", target="sm_90")
    assert (record.status, record.detector) == ("fail", "launch") and words in record.reason


@pytest.mark.skipif(host.runs_on_gpu(), reason="it runs here")
@needs_nvrtc
def test_nothing_is_launched_for_an_empty_tensor_and_that_is_right(tmp_path):
    file = tmp_path / "f.cu"
    file.write_text(KERNEL % "cdiv(n, 256), 256")
    (record,) = assay.check(file, op="gelu", workload="n=0,dtype=fp32", target="sm_90")
    assert record.status == "compiled" and "outputs are empty" in record.reason


@pytest.mark.skipif(host.runs_on_gpu(), reason="it runs here")
@needs_nvrtc
def test_a_replay_names_the_target_and_the_limit_of_time_ends_builds_too(tmp_path):
    file = tmp_path / "f.cu"
    file.write_text(KERNEL % "cdiv(n, 256), 2048")
    (record,) = assay.check(file, op="gelu", dtypes="fp32", target="sm_80")
    assert record.replay.endswith("--target sm_80")
    file.write_text(KERNEL % "cdiv(n, 256), 256")
    (record,) = assay.check(file, op="gelu", dtypes="fp32", target="sm_80", limit=1e-6)
    assert record.status == "inconclusive" and "--limit left out" in record.reason


@pytest.mark.skipif(host.runs_on_gpu(), reason="it runs here")
@needs_nvrtc
def test_a_build_for_one_target_hides_no_failure_for_another(tmp_path):
    file = tmp_path / "f.cu"
    only_90 = '#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900\n#error "needs sm_90"\n#endif\n'
    file.write_text(only_90 + KERNEL % "cdiv(n, 256), 256")
    records = [r for t in ("sm_80", "sm_90") for r in assay.check(file, op="gelu", dtypes="fp32", target=t)]
    assert [(r.status, r.evidence["target"]) for r in records] == [("fail", "sm_80"), ("compiled", "sm_90")]
    assert current_records(records) == records
    file.write_text(KERNEL % "cdiv(n, 256), 256")
    fixed = list(assay.check(file, op="gelu", dtypes="fp32", target="sm_80"))
    assert current_records(records + fixed) == records[1:] + fixed


@needs_nvrtc
def test_a_headline_holds_the_first_error_of_the_compiler(tmp_path):
    file = tmp_path / "f.cu"
    file.write_text("#include <math.h>\n" + KERNEL % "cdiv(n, 256), 256")
    (record,) = assay.check(file, op="gelu", workload="n=5,dtype=fp32", target="sm_90")
    headline = record.reason.splitlines()[0]
    assert 'cannot open source file "math.h"' in headline and "f.cu(" in headline and str(tmp_path) not in headline
    file.write_text('#include "common.h"\n' + KERNEL % "cdiv(n, 256), 256")
    (record,) = assay.check(file, op="gelu", workload="n=5,dtype=fp32", target="sm_90")
    assert "relative to the .cu file" in record.reason and "nvcc" not in record.reason


def test_a_gate_that_does_not_exist_is_wrong_use(tmp_path):
    file = tmp_path / "k.py"
    file.write_text(
        "from assay import kernel\n\n@kernel('gelu', backend='torch', expects={'max_regs': 24})\n"
        "def mine(x, *, out):\n    out.copy_(x)\n"
    )
    with pytest.raises(assay.errors.AssayError, match="max_regs") as refused:
        list(assay.check(file))
    assert "k.py:4" in str(refused.value) and "max_registers" in refused.value.fix
