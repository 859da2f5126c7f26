"""Inside a worker: keeps languages from using code that they cached on disk for an earlier version of the source.

Numba treats a cached function as unchanged if only a function that it calls has changed, in another file; CuPy does if
only a header has. Triton and inductor look at all that goes in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from assay import host
from assay.backends import includes
from assay.backends.nvrtc import HEADERS
from assay.catalog import source
from assay.kernel import Kernel
from assay.worker import scratch


def forget(kernel: Kernel) -> None:
    """Make outdated code of a kernel's language unreachable, before the kernel's file is imported."""
    if numba := sys.modules.get("numba"):
        numba.core.config.CACHE_DIR = str(scratch.folder())
    if kernel.address.backend == "cupy" and kernel.file:
        from cupy.cuda import compiler

        folder, kept = str(_for_headers(kernel.file)), getattr(compiler, "_kernel_cache_backend", None)
        if kept is None:  # before CuPy 14
            os.environ["CUPY_CACHE_DIR"] = folder
        elif type(kept).__name__ == "DiskKernelCacheBackend":  # not if nothing is cached (backends.rewriting)
            compiler._kernel_cache_backend = type(kept)(folder)


def _for_headers(file: Path) -> Path:
    """Return a folder for what CuPy builds with these headers; if they are not known, one for this worker alone."""
    python = [file, *source.imported_by(file)]
    sources = [*python, *(cuda for one in python for cuda in source.named_by(one))]
    written = "\n".join(one.read_text(errors="replace") for one in sources)
    headers = includes.digest(written, file, (f"-I{HEADERS}",), host.cuda_include())
    return host.cache_folder() / "cupy" / headers[:16] if headers else scratch.folder()
