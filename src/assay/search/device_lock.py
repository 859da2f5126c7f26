"""File locks on a device shared by many trials: they train concurrently, but latency is measured with exclusive use.

Every trial of a study that measures latency holds the device's lock: shared while it trains, exclusive while it
measures. It is a file lock of the operating system, released when the process that holds it ends. Machines may share a
home folder, so each has locks of its own. If a process sees only some of the GPUs, as on a Ray cluster, the lock is
that of the GPU it uses."""

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
    """Hold the device exclusively, after waiting until no other trial uses it."""
    with _lock(device) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lock(device: str) -> IO[str]:
    folder = host.cache_folder() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / f"{socket.gethostname()}-{name(device)}").open("w")


def name(device: str) -> str:
    """Return the device's name, the same in all processes of a machine whichever of its GPUs they see."""
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return kind
    seen = [one.strip() for one in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if one.strip()]
    place = int(number or 0)
    return f"cuda-{seen[place] if place < len(seen) else place}"
