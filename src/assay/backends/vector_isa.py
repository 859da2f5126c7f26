"""Finds out which of the processor's vector instructions inductor may use.

Inductor compiles a test for each set of them, which takes far longer than compiling a kernel, and keeps the compiled
tests in its cache. A worker's cache is empty at first, so they are kept here too, under the names that inductor gives
them: a hash of compiler, flags and torch's version. Each of them is still loaded before inductor relies on it, in a
forked process: inductor would start a new one, which takes 0.3 s to load PyTorch's libraries for each test."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

from assay import host

_LOADS_WITHIN = 60
"""Seconds after which a test that is still being loaded counts as one that cannot be loaded."""


def find() -> None:
    """Let inductor run its tests now, starting with the kept ones, in a folder of its own. The process remembers."""
    from torch._inductor.cpu_vec_isa import VecISA, valid_vec_isa_list

    if hasattr(VecISA, "_probe_load"):  # in PyTorch 2.13 and later
        setattr(VecISA, "_probe_load", _loads)  # noqa: B010 (of another class, and private)
    kept, usual = host.cache_folder() / "vector-isa", os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        _copy(kept, Path(folder))
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        try:
            valid_vec_isa_list()
        finally:
            del os.environ["TORCHINDUCTOR_CACHE_DIR"]
            if usual is not None:
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = usual
        _copy(Path(folder), kept)


def _loads(_: Any, library: str) -> bool:
    """Return whether a forked process can load the library. PyTorch's libraries are already loaded there."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_LOADS_WITHIN)
        try:
            ctypes.CDLL(library)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _copy(there: Path, here: Path) -> None:
    """Copy every compiled test that is missing here, each atomically: a worker may be killed at any moment."""
    for library in there.rglob("*.so"):
        target = here / library.relative_to(there)
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=target.parent)
        os.close(handle)
        shutil.copy(library, part)
        Path(part).replace(target)
