"""Finds out which of the processor's vector instructions inductor may use.

Inductor compiles a test for each set of them, which takes far longer than compiling a kernel, and keeps the compiled
tests in its cache. A worker's cache is empty at first, so they are kept here too, under the names that inductor gives
them: a hash of compiler, flags and torch's version. Inductor still loads each of them before it relies on it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from assay import host


def find() -> None:
    """Let inductor run its tests now, starting with the kept ones, in a folder of its own. The process remembers."""
    from torch._inductor.cpu_vec_isa import valid_vec_isa_list

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
