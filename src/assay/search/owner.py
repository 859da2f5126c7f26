"""Which process owns a running trial, and whether it is still alive. Trials whose process is gone are run again; those
of other live processes are left alone."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import psutil

BEAT = 20.0
"""Seconds between two heartbeats of an owner."""
_SILENT = 180.0
"""Seconds without a heartbeat after which an owner on another machine counts as gone."""


@cache
def me() -> dict[str, Any]:
    """Identify this process, such that no later one can be mistaken for it."""
    return {"host": _host(), "pid": os.getpid(), "started": _started(os.getpid())}


def gone(owner: Mapping[str, Any], beat: float) -> bool:
    """Return whether the owner is gone. For a process on this machine the operating system knows; for any other it
    depends on `beat`, the time of its last heartbeat in seconds since 1970."""
    if owner["host"] == _host():
        return _started(owner["pid"]) != owner["started"]
    return time.time() - beat > _SILENT


@cache
def _host() -> str:
    """Identify the machine and its boot, since no process survives a restart."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else psutil.boot_time()}"


def _started(pid: int) -> float | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return None
