"""CuPy: RawKernel, RawModule, ElementwiseKernel and ReductionKernel on torch's memory and stream."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import host
from assay.backends.base import Availability, Backend, Launch, Level, missing, no_gpu
from assay.target import Target

if TYPE_CHECKING:
    import torch

NUMBERS = r"""
#include <cupy/float16.cuh>
// bf16 has no dtype in CuPy: its arrays are uint16, and these give and take its values.
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(float16 x) { return static_cast<float>(x); }
__device__ __forceinline__ float widen(unsigned short x) { return __uint_as_float(static_cast<unsigned int>(x) << 16); }
template <typename T> __device__ __forceinline__ T rounded(float v) { return static_cast<T>(v); }
template <> __device__ __forceinline__ unsigned short rounded<unsigned short>(float v) {
  const unsigned int bits = __float_as_uint(v);
  if (v != v) return 0x7FC0;
  return static_cast<unsigned short>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
"""
"""A preamble for ElementwiseKernel and ReductionKernel: `y = rounded<T>(f(widen(x)))` works for fp32, fp16 and bf16."""


class Cupy(Backend):
    name, title, packages = "cupy", "CuPy", ("cupy-cuda13x", "cupy-cuda12x")

    def availability(self, variant: str = "") -> Availability:
        if gone := missing(("cupy", "pip install cupy-cuda13x"), ("torch", "pip install torch")):
            return gone
        if host.runs_on_gpu():
            return Availability(Level.RUN, "", device="cuda")
        return Availability(
            Level.COMPILE, f"{no_gpu()}: builds PTX and cubin, cannot run", "run it on a machine with an NVIDIA GPU"
        )

    def prepare(self, mode: str) -> None:
        if mode == "build" or not host.runs_on_gpu():
            from assay.backends import cupy_tracing

            cupy_tracing.install()

    def on_current_stream(self) -> contextlib.AbstractContextManager[Any]:
        import cupy
        import torch

        stream: contextlib.AbstractContextManager[Any] = cupy.cuda.ExternalStream(
            torch.cuda.current_stream().cuda_stream
        )
        return stream

    @contextlib.contextmanager
    def tracing(self, target: Target, compiler: str = "") -> Iterator[list[Launch]]:
        from assay.backends import cupy_tracing

        with cupy_tracing.recording(target) as launches:
            yield launches

    def rewrite(self, change: Callable[[str], str], folder: Path) -> None:
        from assay.backends import rewriting

        rewriting.cupy(change)

    def refusal(self, dtype: str) -> str:
        import cupy

        try:
            cupy.dtype({"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}.get(dtype, dtype))
        except TypeError as error:
            return f"cupy: TypeError: {error}"
        return ""


def array(tensor: torch.Tensor) -> Any:
    """Return a torch tensor as a CuPy array on the same memory; bf16 as its uint16 bits."""
    import cupy
    import torch

    return cupy.asarray(tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor)


def options() -> tuple[str, ...]:
    """Return compile options of RawModule for sources that include cuda_fp16.h, cuda_bf16.h or <assay/…>."""
    from assay.backends.nvrtc import HEADERS

    return ("-std=c++17", f"-I{HEADERS}", *(f"-I{folder}" for folder in host.cuda_headers()))


BACKEND = Cupy()
