"""`-I FOLDER` names a folder in which CUDA sources find their headers."""

import json

import pytest

from assay import host
from assay.catalog import source

KERNEL = """// assay: op gelu
// assay: scaled<T><<<cdiv(n, 256), 256>>>(x, out, n)
#include "deep/scale.cuh"
template <typename T> __global__ void scaled(const T* x, T* y, long long n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[SCALE];
}
"""


@pytest.fixture
def folders(write, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "include" / "deep").mkdir(parents=True)
    write("include/deep/scale.cuh", '#include "more.cuh"\n')
    write("include/deep/more.cuh", "#define SCALE 0\n")
    return write("src/k.cu", KERNEL)


@pytest.mark.slow
@pytest.mark.skipif(not host.has("cuda.bindings"), reason="no NVRTC here: pip install cuda-bindings")
@pytest.mark.skipif(host.runs_on_gpu(), reason="there is a GPU: the kernel runs, and it is wrong")
@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
def test_a_header_in_another_folder_is_found_and_the_replay_names_the_folder(compiler, folders, assay, tmp_path):
    if compiler == "nvcc" and host.tool("nvcc") is None:
        pytest.skip("no nvcc here")
    command = ("check", "src/k.cu", "--dtype", "fp32", "--compiler", compiler, "--json")
    without = assay(*command, cwd=tmp_path)
    assert without.returncode == 1 and "scale.cuh" in without.stdout
    assert compiler == "nvcc" or "name the folder of deep/scale.cuh: -I FOLDER" in without.stdout
    done = assay(*command, "-I", "include", cwd=tmp_path)
    (record,) = json.loads(done.stdout)["records"]
    assert record["status"] == "compiled" and "-I include" in record["replay"]


def test_a_folder_that_is_not_there_is_refused(folders, assay, tmp_path):
    done = assay("check", "src/k.cu", "-I", "includes", cwd=tmp_path)
    assert done.returncode == 2 and "-I includes: there is no such folder" in done.stderr and "→" in done.stderr


def test_constants_are_read_from_headers_there_too(folders, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_INCLUDE", str(tmp_path / "include"))
    assert [file.name for file in source.with_headers(folders)] == ["k.cu", "scale.cuh", "more.cuh"]


def test_cudas_cpp_library_may_come_from_another_toolkit_than_the_headers(monkeypatch, tmp_path):
    for folder in ("wheel/include", "toolkit/include/cccl"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "wheel/include/cuda_fp16.h").touch()
    monkeypatch.setattr(host, "cuda_roots", lambda: (tmp_path / "wheel", tmp_path / "toolkit"))
    assert host.cuda_include.__wrapped__() == tmp_path / "wheel/include"
    assert host.cuda_cpp_include.__wrapped__() == tmp_path / "toolkit/include/cccl"
