"""How processes end with the one above them, and what they leave behind with them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
from pathlib import Path

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36
"""Of prctl(2)."""
_ROUNDS = 100


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def end_with_parent(parent: int) -> None:
    """The system kills this process when `parent` dies. Called first thing after a fork."""
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it died before it was asked for
        os._exit(1)


def adopt_orphans() -> None:
    """Processes whose parent dies below this one become its children, wherever they have moved: none gets away."""
    _prctl(_SET_SUBREAPER, 1)


def end_orphans(known: set[int]) -> None:
    """Kill and reap every child that is not known. What those leave falls to this process too."""
    for _ in range(_ROUNDS):
        orphans = [pid for pid in _children() if pid not in known]
        if not orphans:
            return
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except (OSError, ValueError):  # a kernel that does not tell
        import psutil

        return [p.pid for p in psutil.Process().children()]


def kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def remove(folder: str) -> None:
    """What the parent would have removed, had it lived."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
