"""One device for many trials: they train side by side, but while latency is measured nobody else uses it.

Every trial of a study that measures latency holds the device's lock: shared while it trains, alone while it measures.
The lock is of the system, so it is given up with the process that holds it. Machines may share a home folder: each has
locks of its own. Where a process sees a part of the GPUs, as on a Ray cluster, the lock is that of the one it uses."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from assay import host


@contextmanager
def shared(device: str) -> Iterator[None]:
    with _lock(device) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def alone(device: str) -> Iterator[None]:
    """Waits until nobody else uses the device."""
    with _lock(device) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lock(device: str) -> IO[str]:
    folder = host.cache_folder() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / f"{socket.gethostname()}-{name(device)}").open("w")


def name(device: str) -> str:
    """The same for all processes of a machine, whatever part of its GPUs they see."""
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return kind
    seen = [one.strip() for one in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if one.strip()]
    place = int(number or 0)
    return f"cuda-{seen[place] if place < len(seen) else place}"
