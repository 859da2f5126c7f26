"""An exception as data, to be sent to the parent."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from assay import provenance
from assay.errors import AssayError


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as data: its type, words, and the innermost line outside this package and site-packages."""
    frames = traceback.extract_tb(error.__traceback__)
    here = str(Path(__file__).parents[1])
    kernels = tuple(str(Path(here) / room) for room in ("library", "selftest/corpus"))
    theirs = [f for f in frames if "site-packages" not in f.filename and not f.filename.startswith("<")
              and (not f.filename.startswith(here) or f.filename.startswith(kernels))]  # fmt: skip
    where = f"{provenance.shown(Path(theirs[-1].filename))}:{theirs[-1].lineno}" if theirs else ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}:{error.lineno}"
    return {
        "type": type(error).__name__,
        "message": str(error) or repr(error),
        "where": getattr(error, "where", "") or where,
        "ours": isinstance(error, AssayError),
        "fix": getattr(error, "fix", ""),
        "what": getattr(error, "what", ""),
        "trace": "".join(traceback.format_exception(error))[-4000:],
    }
