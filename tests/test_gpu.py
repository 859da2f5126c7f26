"""On the device: every language runs, huge tensors are indexed right, streams are kept, binaries load by name."""

import pytest
import torch

import assay
from assay.backends import nvcc, nvrtc
from assay.catalog import library
from assay.target import Target

pytestmark = pytest.mark.gpu
KERNEL = library.ROOT / "gelu" / "kernel.cu"
NAME = "gelu<float, 4, Erf>"


@pytest.mark.parametrize("backend", ["torch", "inductor", "triton", "cuda", "cupy", "numba"])
def test_every_language_runs_on_the_gpu_and_passes(backend):
    for record in assay.check(f"gelu/{backend}", f"layernorm/{backend}", workloads=12):
        assert record.status == "pass", record.reason
        assert record.evidence["device"] == "cuda" and not record.evidence["interpreted"]
        assert record.provenance["gpu"]


@pytest.mark.parametrize("backend", ["triton", "cuda", "cupy", "numba"])
def test_more_than_2_31_elements_are_indexed_right(backend):
    (record,) = assay.check(f"gelu/{backend}", workload=f"n={2**31 + 4099},dtype=bf16", seconds=120)
    assert record.status == "pass", record.reason


def test_a_launch_goes_to_torchs_current_stream_and_into_a_graph():
    from assay.backends.cuda import Source

    source = Source(KERNEL)
    x, out = torch.randn(1 << 16, device="cuda"), torch.zeros(1 << 16, device="cuda")
    source[NAME](64, 256, x, out, x.numel())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        source[NAME](64, 256, x, out, x.numel())
    x.normal_()
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(out, torch.nn.functional.gelu(x))


WAITING = """#include <cooperative_groups.h>
__global__ void last_of_all(const float* x, float* part, float* out, long long n) {
  if (threadIdx.x == 0) part[blockIdx.x] = x[blockIdx.x % n];
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) out[blockIdx.x] = part[gridDim.x - 1 - blockIdx.x];
}
"""


def test_blocks_of_a_cooperative_launch_wait_for_each_other_and_too_many_are_refused(tmp_path):
    from assay.backends.cuda import Source

    file = tmp_path / "waiting.cu"
    file.write_text(WAITING)
    x, part, out = (torch.randn(200_000, device="cuda") for _ in range(3))
    Source(file)["last_of_all"](128, 32, x, part, out, x.numel(), cooperative=True)
    assert out[:128].equal(x[:128].flip(0))
    with pytest.raises(Exception, match=r"exceeds the limit|COOPERATIVE_LAUNCH_TOO_LARGE"):
        Source(file)["last_of_all"](200_000, 32, x, part, out, x.numel(), cooperative=True)


JOINED = """#include <assay/cluster.cuh>
template <int CLUSTER> __global__ void sums(const float* x, float* out, long long n) {
  cluster_start<CLUSTER>();
  const float v = x[(blockIdx.x * blockDim.x + threadIdx.x) % n];
  cluster_started();
  for (int turn = 0; turn < 5; ++turn) {
    const float sum = cluster_reduce<CLUSTER, Sum, 0>(block_reduce<Sum>(v + turn), turn);
    const float most = cluster_reduce<CLUSTER, Max, 1>(block_reduce<Max>(v * turn), turn);
    if (threadIdx.x == 0) out[10 * blockIdx.x + 2 * turn] = sum, out[10 * blockIdx.x + 2 * turn + 1] = most;
  }
}
"""


@pytest.mark.parametrize("cluster", [2, 8, 16])
def test_the_blocks_of_a_cluster_join_what_each_has(cluster, tmp_path):
    from assay.backends.cuda import Source

    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("no clusters before sm_90")
    file = tmp_path / "joined.cu"
    file.write_text(JOINED)
    clusters = 200
    x = torch.randint(-99, 99, (clusters * cluster * 64,), device="cuda").float()
    out = torch.empty(clusters * cluster, 5, 2, device="cuda")
    Source(file)[f"sums<{cluster}>"](clusters * cluster, 64, x, out, x.numel(), cluster=cluster)
    parts = x.view(clusters, -1)
    each = [torch.stack(((parts + turn).sum(1), (parts * turn).amax(1)), 1) for turn in range(5)]
    assert out.equal(torch.stack(each, 1).repeat_interleave(cluster, 0))


@pytest.mark.parametrize("kind", ["cubin", "ptx"])
@pytest.mark.parametrize("compiler", [nvrtc, nvcc])
def test_a_binary_is_loaded_and_launched_by_its_demangled_name(kind, compiler, tmp_path):
    from assay.backends.cuda import Binary

    source, name = library.ROOT / "silu" / "kernel.cu", "silu<float, 4>"
    artifact = compiler.build(source.read_text(), str(source), name, Target("sm_90"))
    file = tmp_path / f"silu.{kind}"
    file.write_bytes(getattr(artifact, kind))
    x, out = torch.randn(4096, device="cuda"), torch.zeros(4096, device="cuda")
    Binary(file)[name](4, 256, x, out, 4096)
    torch.cuda.synchronize()
    torch.testing.assert_close(out, torch.nn.functional.silu(x))


def test_a_launch_the_device_refuses_is_an_error_not_silence(tmp_path):
    file = tmp_path / "wide.cu"
    file.write_text(
        "// assay: wide<T><<<1, 2048>>>(x, out, n)\n"
        "template <typename T> __global__ void wide(const T* x, T* y, long long n) {}\n"
    )
    (record,) = assay.check(file, op="gelu", dtypes="fp32", workloads=2)
    assert record.status == "fail" and record.evidence["detector"] == "launch"


def test_a_launch_that_does_not_fit_its_kernel_is_not_started(tmp_path):
    file = tmp_path / "few.cu"
    file.write_text(
        "// assay: few<T><<<cdiv(n, 256), 256>>>(x, out)\n"
        "template <typename T> __global__ void few(const T* x, T* y, long long n) {}\n"
    )
    (record,) = assay.check(file, op="gelu", dtypes="fp32", workloads=2)
    assert (record.status, record.evidence["detector"]) == ("fail", "launch")
    assert "`long long n` (few.cu:2), parameter 3 of `few<float>`, gets nothing" in record.reason


def test_the_interpreters_work_beside_a_gpu_too(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    from assay import host

    host.gpu.cache_clear()
    try:
        (record,) = assay.check("gelu/triton", dtypes="bf16", workloads=4)
    finally:
        monkeypatch.undo()
        host.gpu.cache_clear()
    assert record.status == "pass" and record.evidence["interpreted"]


def test_two_clocks_agree_on_a_kernel_that_fills_the_device():
    for record in assay.bench("gelu/triton", "gelu/cuda", workload=f"n={1 << 28},dtype=bf16", budget=2):
        assert record.status == "pass", record.reason
        evidence = record.evidence
        assert evidence["second_clock"]["agrees"], evidence["second_clock"]
        assert evidence["launches"] == 1 and evidence["cold_enough"] and "graph" in evidence["method"]
        assert 500 < evidence["clocks"]["sm_mhz"] < 3000
        assert record.median > 0.5 * evidence["hot"]["median"]


SYNCS = """
import torch
from assay import kernel

@kernel("gelu", backend="torch")
def mine(x, *, out):
    out.copy_(torch.nn.functional.gelu(x))
    torch.cuda.synchronize()
"""
HIDDEN = """
import torch
from assay import kernel

side = torch.cuda.Stream()

@kernel("gelu", backend="torch")
def mine(x, *, out):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.nn.functional.gelu(x[::2])
    out.copy_(torch.nn.functional.gelu(x))
"""


@pytest.mark.parametrize("body, why", [(SYNCS, "host sync"), (HIDDEN, "hidden stream")], ids=["syncs", "hides"])
def test_a_kernel_that_syncs_or_hides_work_is_timed_and_explained(body, why, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(body)
    found = {r.kernel: r for r in assay.bench(file, workload=f"n={1 << 22},dtype=bf16", rounds=5, budget=1)}
    record = found["gelu/torch:mine"]
    assert record.status == "pass", record.reason
    assert why in record.evidence["second_clock"]["why"], record.evidence["second_clock"]


def test_a_time_below_the_floor_is_a_failure(tmp_path, monkeypatch):
    """A model that says the device is slow makes every honest kernel too fast to be true."""
    import json

    from assay.machine.model import Figure, Model, kept_file, this_device

    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    slow = Model(this_device("cuda"), "measured", "r", "t", {"dram.copy": Figure(1e9, "B/s")})
    file = kept_file(this_device("cuda"))
    file.parent.mkdir(parents=True)
    record = assay.Record("machine", "machine", "", assay.Status.PASS, "", evidence={"model": slow.to_dict()})
    file.write_text(json.dumps({"records": [record.to_dict()]}))
    for timed in assay.bench("gelu/triton", workload=f"n={1 << 27},dtype=bf16", rounds=5, budget=1):
        assert timed.status == "fail" and "floor" in timed.reason


@pytest.mark.parametrize(
    "kernel", ["gelu/cuda", "layernorm/cuda", "softmax/triton", "ln_gelu/triton", "layernorm/numba"]
)
def test_the_code_that_is_timed_is_the_code_that_inspect_shows(kernel):
    timed_with = {"workload": "dtype=bf16", "second_clock": False, "rounds": 5}
    (timed,) = (r for r in assay.bench(kernel, **timed_with) if r.kernel == kernel)
    # The workload of the record: LayerNorm is timed beside plain PyTorch, hence without mean and rstd.
    shown = {r.evidence["text_hash"] for r in assay.inspect(kernel, workload=timed.workload, targets="sm_90a")}
    assert timed.artifacts and {a["text_hash"] for a in timed.artifacts} == shown


@pytest.mark.parametrize("kernel", ["gelu/cupy", "layernorm/cupy"])
def test_what_cupy_loads_is_what_inspect_shows(kernel, tmp_path, monkeypatch):
    from assay.isa.cubin import functions

    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    (record,) = assay.check(kernel, workload="dtype=fp32")
    assert record.status == "pass", record.reason
    kept = [f.read_bytes() + b"\0" for f in tmp_path.rglob("*.cubin")]  # CuPy keeps a cubin without its last byte
    loaded = {f.text_hash for cubin in kept for f in functions(cubin[cubin.index(b"\x7fELF") :])}
    shown = {r.evidence["text_hash"] for r in assay.inspect(kernel, workload="dtype=fp32", targets="sm_90,sm_90a")}
    assert loaded & shown
