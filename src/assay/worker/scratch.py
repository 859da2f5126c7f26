"""A temporary folder for one process's compilers, removed with it. A killed process's folder is removed by the next."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
"""The environment variable, below a zygote, with its folder, which inductor uses as well."""
_PREFIX = "assay-worker-"
_YOUNG = 60.0
"""Seconds in which a new folder may not be locked yet."""


class Scratch:
    """A folder of this process's own. It is locked as long as this process or one forked from it lives."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def folder() -> Path:
    """Return a new folder inside a worker, in that of the zygote above it, with which it is removed."""
    return Path(tempfile.mkdtemp(dir=os.environ.get(VARIABLE)))


def sweep() -> None:
    """Remove the folders of processes that were killed."""
    with contextlib.suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if folder.stat().st_uid == os.getuid() and time.time() - folder.stat().st_mtime > _YOUNG:
                    _remove_if_free(folder)


def _remove_if_free(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)
