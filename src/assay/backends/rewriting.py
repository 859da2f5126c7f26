"""Changes PTX inside a worker, between the compiler that writes it and the one that assembles it, in languages that do
both in one step. Such builds are neither cached for other processes nor taken from their caches."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Change = Callable[[str], str]


def triton(change: Change, folder: Path) -> None:
    from triton.backends.nvidia.compiler import CUDABackend

    from assay.backends import triton_tracing

    os.environ["TRITON_CACHE_DIR"], triton_tracing.own_cache = str(folder), folder
    assembled = CUDABackend.make_cubin

    def make_cubin(self: Any, src: str, *others: Any) -> Any:
        return assembled(self, change(src), *others)

    CUDABackend.make_cubin = make_cubin


def cupy(change: Change) -> None:
    from cupy.cuda import compiler

    compiled = compiler._compile_using_nvrtc_no_warning

    def compile_(*args: Any, **named: Any) -> tuple[Any, Any]:
        ptx, mapping = compiled(*args, **named)
        return change(ptx.decode()).encode(), mapping

    compiler._compile_using_nvrtc_no_warning = compile_
    compiler._use_ptx = True
    compiler._kernel_cache_backend = _Nothing()


class _Nothing:
    """A build cache for CuPy that keeps nothing."""

    def load(self, name: str) -> None:
        return None

    def save(self, name: str, payload: bytes, source: str) -> None:
        pass


def numba(change: Change, folder: Path) -> None:
    import numba as cpu

    codegen: Any = import_module("numba.cuda.codegen")  # numba-cuda's, which replaces Numba's own
    driver: Any = import_module("numba.cuda.cudadrv.driver")
    cpu.config.CACHE_DIR = str(folder)

    def get_cubin(self: Any, cc: Any = None) -> Any:
        """Do what Numba's own method does, with changed PTX. That of link-time optimization is linked already."""
        cc = self._ensure_cc(cc)
        if (known := self._cubin_cache.get(cc)) is not None:
            return known
        linker = driver._Linker(max_registers=self._max_registers, cc=cc, lto=False)
        for ptx in [self.get_lto_ptx(cc=cc)] if self._lto else self.get_asm_strs(cc=cc):
            linker.add_ptx(change(ptx.rstrip("\0")).encode())
        for file in () if self._lto else self._linking_files:
            linker.add_file_guess_ext(file, False)
        self._cubin_cache[cc] = linker.complete()
        self._linkerinfo_cache[cc] = linker.info_log
        return self._cubin_cache[cc]

    codegen.CUDACodeLibrary.get_cubin = get_cubin
