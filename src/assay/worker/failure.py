"""Exceptions in another process, sent to the parent as data and raised again there."""

from __future__ import annotations

import errno
import re
import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import provenance
from assay.errors import AssayError, SourceError, UsageError
from assay.worker.messages import Answer

_SCARCE = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EMFILE: "this process has too many files open (see `ulimit -n`)",
    errno.ENFILE: "this machine has too many files open",
    errno.ENOMEM: "there is no memory left",
    errno.EROFS: "the file system is read-only",
}
"""Resources that a machine may run out of through no fault of a kernel."""
_LONG = 20_000
_WRAPPED = "InterpreterError"
"""Triton's interpreter raises it in place of an exception inside a kernel, which it names as the cause."""
_HALVES = "in an njit kernel, pass arrays(x, out) of assay.backends.njit, and use its load and store in the loop"
_OR_FEWER = 'or, if fp32 is enough, say so: @kernel(…, dtypes=["fp32"])'
_KNOWN = {
    r"Cannot determine Numba type of <class 'torch\.Tensor'>": (
        "a torch tensor was given to a Numba function, which takes arrays",
        "pass arrays(x, out) of assay.backends.njit; in fp16 and bf16, use its load and store in the loop: see "
        "docs/languages.md",
    ),
    r"Got unsupported ScalarType BFloat16": (
        "NumPy, and so Numba, has no bf16",
        f"{_HALVES} (on a GPU launch of assay.backends.numba), see docs/languages.md; {_OR_FEWER}",
    ),
    r"COOPERATIVE_LAUNCH_TOO_LARGE": (
        "a cooperative launch has more blocks than the GPU can run at once",
        "start at most as many blocks as it has multiprocessors, times those that fit on each",
    ),
    r"INVALID_CLUSTER_SIZE": (
        "a cluster has more blocks than run at once on neighbouring multiprocessors of this GPU",
        "fewer blocks a cluster, or blocks with fewer registers or less shared memory",
    ),
    r"\Afloat16\Z": ("Numba has no fp16 on the CPU", f"{_HALVES}, see docs/languages.md; {_OR_FEWER}"),
}
"""Messages of other packages that many lines do not explain, with what happened and what to do."""


@dataclass(frozen=True)
class Failure(Answer):
    """An exception as data."""

    type: str
    message: str
    where: str
    """The innermost line outside this package, Python's own library and site-packages."""
    ours: bool
    """Whether it is an AssayError, whose parts are `what`, `fix` and `where`."""
    fix: str
    what: str
    scarce: str
    """What the machine had run out of, in words."""
    trace: str


class Refused(AssayError):
    """The other process is alive, and its answer is an exception. `fields` are those of `Failure`, as plain data."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields, self.failure = fields, Failure(**fields)
        # An AssayError names its place in its message, or the place does not matter.
        where = fields["where"] if not fields["ours"] or fields["message"].startswith(f"{fields['where']}:") else ""
        super().__init__(fields["what"] or f"{fields['type']}: {fields['message']}", fix=fields["fix"], where=where)

    @property
    def wrong_use(self) -> UsageError | None:
        """The same as a UsageError if the user caused it, in the command or in a model of their own; else None."""
        if self.failure.type not in (UsageError.__name__, SourceError.__name__):
            return None
        return UsageError(self.what, fix=self.fix, where=self.where)


def describe(error: BaseException) -> dict[str, Any]:
    """Return the fields of `Failure` for an exception, as plain data."""
    trace = _trace(error)[-4000:]
    while type(error).__name__ == _WRAPPED and error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    here = str(Path(__file__).parents[1])
    kernels = tuple(str(Path(here) / room) for room in ("library", "selftest/corpus"))
    python = sysconfig.get_path("stdlib")
    outside = [
        f
        for f in frames
        if "site-packages" not in f.filename
        and not f.filename.startswith(("<", python))
        and not f.filename.endswith(".pyx")
        and (not f.filename.startswith(here) or f.filename.startswith(kernels))
    ]
    where = f"{provenance.shown(Path(outside[-1].filename))}:{outside[-1].lineno}" if outside else ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}:{error.lineno}"
    message = words(error)[:_LONG]
    plain, fix = next(
        (known for sign, known in _KNOWN.items() if re.search(sign, message)), (message, _text(error, "fix"))
    )
    return {
        "type": type(error).__name__,
        "message": plain,
        "where": _text(error, "where") or where,
        "ours": isinstance(error, AssayError),
        "fix": fix,
        "what": _text(error, "what"),
        "scarce": scarce(error),
        "trace": trace,
    }


def words(error: BaseException) -> str:
    """Return the exception's message. An exception class of the kernel's own may raise while it formats that."""
    try:
        return str(error) or repr(error)
    except BaseException:
        return f"{type(error).__name__} (which cannot be printed)"


def scarce(error: BaseException) -> str:
    """Return what the machine had run out of when this was raised, in words; empty if that was not the cause."""
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
