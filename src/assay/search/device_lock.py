"""One device for many trials: they train side by side, but while latency is measured nobody else uses it.

Every trial of a study that measures latency holds the device's lock: shared while it trains, alone while it measures.
The lock is of the system, so it is given up with the process that holds it."""

from __future__ import annotations

import fcntl
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
    return (folder / device.replace(":", "-")).open("w")
