"""Ends processes together with the one above them, and removes what they leave behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
from pathlib import Path

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36
"""Options of prctl(2)."""
_ROUNDS = 100


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def end_with_parent(parent: int) -> None:
    """Make the system kill this process when `parent` dies. Called right after a fork."""
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before the signal was requested
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent dies, whatever group or session they have moved to."""
    _prctl(_SET_SUBREAPER, 1)


def end_orphans(known: set[int]) -> None:
    """Kill and reap every child that is not known. The orphans of those become children of this process and end too."""
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
    except (OSError, ValueError):  # a Linux kernel that does not list them
        import psutil

        return [p.pid for p in psutil.Process().children()]


def kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def remove(folder: str) -> None:
    """Remove a folder that the parent would have removed if it had lived."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
