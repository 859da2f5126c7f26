"""Files that are whole or not there: written beside their place, then renamed onto it."""

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
    """All of `data`, or an error that says why and leaves what was there, with nothing half-written beside it."""
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
        _remove(part)  # first, so that the room it took is counted as free
        raise _failed(path, data, problem) from None
    finally:
        _remove(part)


def _sweep(path: Path) -> None:
    """Remove what processes that were killed while writing left behind."""
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
