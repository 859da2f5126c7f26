"""Imported by a zygote to keep Triton's hash of its own compiler, several hundred megabytes, which Triton computes
before it compiles anything. It is kept on disk until a file of the installation changes, for every worker."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from assay import host

_HASHED = ("*.py", "_C/libtriton.*")
"""The files that are hashed, and more: all Python files of the package, and the compiler."""


def keep(cache: object, package: Path, folder: Path) -> None:
    """Make `cache.triton_key` return its value at once, from `folder` if it was computed for these files before."""
    original = cache.triton_key  # type: ignore[attr-defined]
    file = folder / f"{_identity(package)}.txt"
    try:
        known = file.read_text()
    except OSError:
        known = original()
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_suffix(f".{os.getpid()}")
            unfinished.write_text(known)
            unfinished.replace(file)
    cache.triton_key = lambda: known  # type: ignore[attr-defined]


def _identity(package: Path) -> str:
    """Return a hash of name, size, inode and time of change of every file that goes in."""
    return hashlib.sha256("\n".join(sorted(_files(package))).encode()).hexdigest()[:32]


def _files(package: Path) -> Iterator[str]:
    for pattern in _HASHED:
        for file in package.rglob(pattern):
            with contextlib.suppress(OSError):
                stat = file.stat()
                yield f"{file} {stat.st_size} {stat.st_ino} {stat.st_mtime_ns} {stat.st_ctime_ns}"


if os.environ.get("TRITON_INTERPRET") != "1":  # an interpreter compiles nothing
    module = import_module("triton.runtime.cache")
    if hasattr(module, "triton_key"):  # its name in Triton 3.5 and later
        keep(module, Path(import_module("triton").__file__ or "").parent, host.cache_folder() / "triton-key")
