"""On the device: every language runs, huge tensors are indexed right, streams are kept, binaries load by name."""

import pytest
import torch

import assay
from assay import library
from assay.backends import nvcc, nvrtc
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


def test_more_than_2_31_elements_are_indexed_right():
    kernels = ["gelu/triton", "gelu/cuda", "gelu/cupy", "gelu/numba"]
    for record in assay.check(*kernels, workload=f"n={2**31 + 4099},dtype=bf16", seconds=120):
        assert record.status == "pass", (record.kernel, record.reason)


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


@pytest.mark.parametrize("kind", ["cubin", "ptx"])
@pytest.mark.parametrize("compiler", [nvrtc, nvcc])
def test_a_binary_is_loaded_and_launched_by_its_demangled_name(kind, compiler, tmp_path):
    from assay.backends.cuda import Binary

    artifact = compiler.build(KERNEL.read_text(), str(KERNEL), NAME, Target("sm_90"))
    file = tmp_path / f"gelu.{kind}"
    file.write_bytes(getattr(artifact, kind))
    x, out = torch.randn(4096, device="cuda"), torch.zeros(4096, device="cuda")
    Binary(file)[NAME](4, 256, x, out, 4096)
    torch.cuda.synchronize()
    torch.testing.assert_close(out, torch.nn.functional.gelu(x))


def test_a_launch_the_device_refuses_is_an_error_not_silence(tmp_path):
    file = tmp_path / "wide.cu"
    file.write_text(
        "// assay: wide<T><<<1, 2048>>>(x, out, n)\n"
        "template <typename T> __global__ void wide(const T* x, T* y, long long n) {}\n"
    )
    (record,) = assay.check(file, op="gelu", dtypes="fp32", workloads=2)
    assert record.status == "fail" and record.evidence["detector"] == "launch"


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
