"""Examines this machine without importing anything heavy: one finding per line, each with its fix."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from assay import host, provenance
from assay import tool as tools
from assay.backends import Level, backends
from assay.errors import AssayError
from assay.record import Record, Status


@dataclass(frozen=True)
class Finding:
    group: str
    name: str
    good: bool
    what: str
    fix: str = ""

    def record(self) -> Record:
        status = Status.PASS if self.good else Status.SKIPPED
        return Record("doctor", f"{self.group}/{self.name}", "", status, self.what, evidence={"fix": self.fix})


def findings() -> Iterator[Finding]:
    yield from _machine()
    yield from _backends()
    yield from _tools()
    yield from _packages()


def _machine() -> Iterator[Finding]:
    import psutil

    memory = psutil.virtual_memory()
    yield Finding("machine", "cpu", True, f"{provenance.cpu()}, {os.cpu_count()} cores, {platform.machine()}")
    yield Finding("machine", "memory", True, f"{memory.total / 2**30:.0f} GiB, {memory.available / 2**30:.0f} GiB free")
    yield Finding("machine", "python", True, f"{platform.python_version()}, {platform.system()} {platform.release()}")
    gpu = host.gpu()
    if gpu is None:
        yield Finding(
            "machine",
            "gpu",
            False,
            "none: kernels are interpreted, simulated or only compiled",
            "an NVIDIA GPU and its driver (libcuda.so.1); see README, “On a GPU machine without internet”",
        )
        return
    what = f"{gpu.name}, {gpu.target}, {gpu.memory / 2**30:.0f} GiB, {gpu.multiprocessors} multiprocessors"
    yield Finding("machine", "gpu", True, what)
    yield Finding("machine", "driver", True, gpu.driver)
    if not host.torch_sees_cuda():
        yield Finding("machine", "torch", False, "torch here was built without CUDA", "install a CUDA build of torch")


def _backends() -> Iterator[Finding]:
    for b in backends():
        here = b.availability()
        versions = ", ".join(f"{p} {v}" for p in b.packages if (v := host.version(p)))
        level = {
            Level.RUN: "runs",
            Level.INTERPRET: "interpreted",
            Level.COMPILE: "compiles",
            Level.MISSING: "missing",
        }[here.level]
        what = (
            f"{level}"
            + (f" on {here.device}" if here.level is Level.RUN else "")
            + (f" ({versions})" if versions else "")
        )
        why = f": {here.reason}" if here.reason else ""
        yield Finding("backends", b.name, here.level is Level.RUN, what + why, here.fix)


_TOOLS = {
    "nvcc": ("CUDA compiler", "pip install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88"),
    "ptxas": ("PTX assembler", "pip install nvidia-cuda-nvcc==13.0.88"),
    "nvdisasm": ("disassembler", "pip install nvidia-cuda-nvdisasm"),
    "cuobjdump": ("object reader", "pip install nvidia-cuda-cuobjdump"),
    "compute-sanitizer": ("memory and race checker", "comes with the CUDA toolkit; runs only beside a GPU"),
    "ncu": ("profiler", "comes with the CUDA toolkit (Nsight Compute); runs only beside a GPU"),
}


def _tools() -> Iterator[Finding]:
    compiler = shutil.which("g++") or shutil.which("c++")
    yield Finding(
        "tools",
        "c++",
        bool(compiler),
        compiler or "none: inductor cannot compile on the CPU",
        "" if compiler else "apt-get install g++",
    )
    for name, (purpose, fix) in _TOOLS.items():
        path = host.tool(name)
        yield Finding(
            "tools",
            name,
            path is not None,
            f"{purpose}: {_version(path)}" if path else f"{purpose}: not found",
            "" if path else fix,
        )
    include = host.cuda_include()
    yield Finding(
        "tools",
        "headers",
        include is not None,
        str(include) if include else "cuda_fp16.h is nowhere",
        "" if include else "pip install nvidia-cuda-runtime==13.0.96",
    )


def _version(tool: Path) -> str:
    try:
        return f"{tools.version(str(tool))} ({tool})"
    except (OSError, AssayError):
        return str(tool)


def _packages() -> Iterator[Finding]:
    for name in (
        "torch",
        "triton",
        "numba",
        "numba-cuda",
        "cupy-cuda13x",
        "cuda-core",
        "cuda-bindings",
        "numpy",
        "pydantic",
    ):
        version = host.version(name)
        module = {
            "numba-cuda": "numba_cuda",
            "cupy-cuda13x": "cupy",
            "cuda-core": "cuda.core",
            "cuda-bindings": "cuda.bindings",
        }.get(name, name)
        there = version is not None or importlib.util.find_spec(module.split(".")[0]) is not None
        yield Finding("packages", name, there, version or "not installed", "" if there else f"pip install {name}")
