"""Collects what one command could not do until it ends: `main` prints it, and it decides the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.errors import AssayError

refused: list[AssayError] = []
"""Errors in what was named, while the rest was judged."""
unkept: list[str] = []
"""Files that were asked for and could not be written."""
awaited: dict[str, Any] = {}
"""What was asked for and is not written yet: `json`, `out` and `junit`, the last two with their paths."""
command = ""
"""The command without its arguments: `assay run`."""
WRONG_USE, NOT_KEPT, OUR_FAULT = 2, 3, 4
"""Exit codes; see docs/records.md."""


def begin() -> None:
    global command
    command = ""
    refused.clear()
    unkept.clear()
    awaited.clear()


def awaiting(name: str, value: Any) -> Any:
    """Note that `--json`, `--out` or `--junit` was given, and return its value."""
    if value:
        awaited[name] = value
    return value


def settle(path: Path) -> None:
    """Note that a file was written, or that a message says why not."""
    for name in [name for name, asked in awaited.items() if asked == path]:
        del awaited[name]


def refuse(problems: list[AssayError]) -> None:
    """Note each problem once, however many kernels it concerns."""
    known = {str(p) for p in refused}
    for problem in problems:
        if str(problem) not in known:
            refused.append(problem)
            known.add(str(problem))


def exit_code(code: int) -> int:
    """Return the exit code: that of a failure first, then of what was refused, then of what could not be written."""
    if code:
        return code
    return WRONG_USE if refused else NOT_KEPT if unkept else 0
