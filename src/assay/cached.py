"""Text that takes seconds to compute and follows from what is installed: computed once, and kept on disk."""

import contextlib
import hashlib
import os
from collections.abc import Callable

from assay import host


def text(name: str, identity: str, compute: Callable[[], str]) -> str:
    """Return `compute()`, or what it returned for the same identity before. If nothing can be kept, it is computed
    every time."""
    file = host.cache_folder() / name / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.txt"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return file.read_text(encoding="utf-8")
    computed = compute()
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(computed, encoding="utf-8")
        unfinished.replace(file)  # at once: a reader never sees half of it
    return computed
