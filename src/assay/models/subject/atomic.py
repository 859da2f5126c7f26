"""Atomic writing of files: to a temporary file in the same folder, which is then renamed."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from pathlib import Path

import psutil

from assay.errors import Lacking

_MB = 1e6


def write(path: Path, data: bytes) -> None:
    """Write all of `data`. On an error the old file is unchanged, and no partial file is left."""
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as problem:
        _remove(part)  # before the error is made, so that its space counts as free
        raise _failed(path, data, problem) from None
    finally:
        _remove(part)


def _sweep(path: Path) -> None:
    """Remove partial files of processes that were killed while writing."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        process = part.name.split(".")[-2].partition("-")[0]
        if process.isdigit() and not psutil.pid_exists(int(process)):
            _remove(part)


def _remove(part: Path) -> None:
    with contextlib.suppress(OSError):
        part.unlink()


def _failed(path: Path, data: bytes, problem: OSError) -> Lacking:
    folder = next(p for p in path.parents if p.exists())
    free = shutil.disk_usage(folder).free
    return Lacking(
        f"cannot write {path}: {problem.strerror or problem}",
        fix=f"it needs {len(data) / _MB:.1f} MB and {free / _MB:.1f} MB are free; make room, or set ASSAY_DATA to "
        "another folder",
    )
