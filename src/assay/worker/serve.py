"""Inside a worker: answer the parent's questions until it goes away."""

from __future__ import annotations

import os
import socket
import traceback
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.worker import channel
from assay.worker.execute import build, reference, trial

_ANSWERS = {"trial": trial, "build": build, "reference": reference}


def serve(connection: socket.socket, arena: channel.Arena) -> None:
    # A forked child must neither answer in this process's name nor keep the channel open.
    os.register_at_fork(after_in_child=connection.close)
    while (message := channel.receive(connection)) is not None:
        try:
            answer = _ANSWERS[message["do"]](message, arena)
        except BaseException as error:  # sys.exit and KeyboardInterrupt are answers too
            answer = {"error": describe(error)}
        channel.send(connection, answer)


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as data: its type, words, and the innermost line outside this package and site-packages."""
    frames = traceback.extract_tb(error.__traceback__)
    here = str(Path(__file__).parents[1])
    kernels = tuple(str(Path(here) / room) for room in ("library", "selftest/corpus"))
    theirs = [f for f in frames if "site-packages" not in f.filename and not f.filename.startswith("<")
              and (not f.filename.startswith(here) or f.filename.startswith(kernels))]  # fmt: skip
    where = f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else ""
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
