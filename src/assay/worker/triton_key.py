"""Imported by a zygote: before Triton compiles anything, it hashes its own compiler, several hundred megabytes. The
result is kept on disk for as long as no file of the installation changes, and is there in every worker."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from assay import cached

_HASHED = ("*.py", "_C/libtriton.*")
"""Patterns of the files that the hash covers, and more: all Python files of the package, and the compiler."""


def keep(cache: object, package: Path) -> None:
    """Give `cache.triton_key` its value, which is computed only if it was not computed for these very files before."""
    known = cached.text("triton-key", "\n".join(sorted(_files(package))), cache.triton_key)  # type: ignore[attr-defined]
    cache.triton_key = lambda: known  # type: ignore[attr-defined]


def _files(package: Path) -> Iterator[str]:
    """Yield name, size, inode and time of change of every file that goes into the hash."""
    for pattern in _HASHED:
        for file in package.rglob(pattern):
            with contextlib.suppress(OSError):
                stat = file.stat()
                yield f"{file} {stat.st_size} {stat.st_ino} {stat.st_mtime_ns} {stat.st_ctime_ns}"


if os.environ.get("TRITON_INTERPRET") != "1":  # an interpreter compiles nothing
    module = import_module("triton.runtime.cache")
    if hasattr(module, "triton_key"):  # its name in Triton 3.5 and later
        keep(module, Path(import_module("triton").__file__ or "").parent)
