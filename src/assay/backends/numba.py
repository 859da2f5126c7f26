"""Numba CUDA: compiled on a GPU; simulated, or built but not run, without one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import host
from assay.artifact import Artifact
from assay.backends.base import Availability, Backend, Launch, Level, missing, no_gpu
from assay.target import Target

if TYPE_CHECKING:
    import torch

_INSTALL = "pip install numba-cuda nvidia-cuda-runtime==13.0.96 nvidia-nvvm==13.0.88 nvidia-cuda-nvrtc==13.0.88"


class Numba(Backend):
    name, title, packages = "numba", "Numba, CUDA", ("numba", "numba-cuda", "numpy")

    def availability(self, variant: str = "") -> Availability:
        if gone := missing(("numba", "pip install numba"), ("numba_cuda", _INSTALL), ("torch", "pip install torch")):
            return gone
        if host.runs_on_gpu():
            return Availability(Level.RUN, "", device="cuda")
        return Availability(
            Level.INTERPRET, f"{no_gpu()}: Numba's simulator", "run it on a machine with an NVIDIA GPU", "numba-sim"
        )

    def prepare(self, mode: str) -> None:
        if mode == "numba-sim":
            from assay.backends import numba_simulator

            numba_simulator.patch()

    @contextlib.contextmanager
    def tracing(self, target: Target, compiler: str = "") -> Iterator[list[Launch]]:
        from assay.backends import numba_tracing

        with numba_tracing.recording(target) as launches:
            yield launches

    def instead_of_launches(self, target: Target, found: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        from assay.backends import numba_tracing

        return numba_tracing.instead_of_launches(target, found)

    def rewrite(self, change: Callable[[str], str], folder: Path) -> None:
        from assay.backends import rewriting

        rewriting.numba(change, folder)

    def launched(self) -> contextlib.AbstractContextManager[list[Artifact]]:
        from assay.backends import numba_tracing

        return numba_tracing.launched()


def launch(kernel: Any, grid: int | tuple[int, ...], block: int | tuple[int, ...], *args: Any) -> None:
    """Start `kernel` on torch's current stream. Tensors become arrays on the same memory, bf16 as its uint16 bits
    (Numba has no array type for it); an empty grid starts nothing."""
    import torch
    from numba import cuda

    if 0 in (grid if isinstance(grid, tuple) else (grid,)):
        return
    arrays = [_array(a) if isinstance(a, torch.Tensor) else a for a in args]
    if any(isinstance(a, torch.Tensor) and a.is_cuda for a in args):
        stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
        kernel[grid, block, stream](*arrays)
    else:
        kernel[grid, block](*arrays)


def _array(tensor: torch.Tensor) -> Any:
    import torch
    from numba import cuda

    plain = tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor
    if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
        return cuda.as_cuda_array(plain)
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    return FakeCUDAArray(plain.numpy())  # a plain numpy array would be copied, and refused if its rows have gaps


def __getattr__(name: str) -> Any:
    """Import `widen` and `rounded` when they are first used, because they import numba."""
    if name in ("widen", "rounded"):
        from assay.backends import numba_halves

        return getattr(numba_halves, name)
    raise AttributeError(name)


BACKEND = Numba()
