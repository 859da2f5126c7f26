"""An exception as data, to be sent to the parent."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path
from typing import Any

from assay import provenance
from assay.errors import AssayError

_SCARCE = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EMFILE: "this process has too many files open (see `ulimit -n`)",
    errno.ENFILE: "this machine has too many files open",
    errno.ENOMEM: "there is no memory left",
    errno.EROFS: "the file system is read-only",
}
"""What a machine may run out of through no fault of a kernel."""
_LONG = 20_000


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as data: its type, words, and the innermost line outside this package and site-packages."""
    frames = traceback.extract_tb(error.__traceback__)
    here = str(Path(__file__).parents[1])
    kernels = tuple(str(Path(here) / room) for room in ("library", "selftest/corpus"))
    theirs = [
        f
        for f in frames
        if "site-packages" not in f.filename
        and not f.filename.startswith("<")
        and (not f.filename.startswith(here) or f.filename.startswith(kernels))
    ]
    where = f"{provenance.shown(Path(theirs[-1].filename))}:{theirs[-1].lineno}" if theirs else ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}:{error.lineno}"
    return {
        "type": type(error).__name__,
        "message": words(error)[:_LONG],
        "where": _text(error, "where") or where,
        "ours": isinstance(error, AssayError),
        "fix": _text(error, "fix"),
        "what": _text(error, "what"),
        "scarce": scarce(error),
        "trace": _trace(error)[-4000:],
    }


def words(error: BaseException) -> str:
    """What it says; an exception of the kernel's own may fail even at that."""
    try:
        return str(error) or repr(error)
    except BaseException:
        return f"{type(error).__name__} (which cannot be printed)"


def scarce(error: BaseException) -> str:
    """What the machine had run out of when this was raised, in words; empty where that was not the cause."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        if isinstance(at, OSError) and at.errno in _SCARCE:
            return _SCARCE[at.errno]
        at = at.__cause__ or at.__context__
    return ""


def _text(error: BaseException, name: str) -> str:
    value = getattr(error, name, "")
    return value if isinstance(value, str) else ""


def _trace(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:
        return ""
