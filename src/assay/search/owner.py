"""Which process a running trial belongs to, and whether that is still there: what was running when a study was killed
is run again, and what another process is doing is left to it."""

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
"""Seconds after which an owner says again that it is there."""
_SILENT = 180.0
"""Seconds of silence after which an owner on another machine counts as gone."""


@cache
def me() -> dict[str, Any]:
    """This process, so that no later one can be taken for it."""
    return {"host": _host(), "pid": os.getpid(), "started": _started(os.getpid())}


def gone(owner: Mapping[str, Any], beat: float) -> bool:
    """`beat`: when it was last heard of, in seconds since 1970. Of a process on this machine the system knows."""
    if owner["host"] == _host():
        return _started(owner["pid"]) != owner["started"]
    return time.time() - beat > _SILENT


@cache
def _host() -> str:
    """The machine and its boot: after a restart no process of before is there."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else psutil.boot_time()}"


def _started(pid: int) -> float | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return None
