"""The private channel between parent and worker: length-prefixed JSON on a socket, tensors in shared memory.

JSON and raw bytes only: the parent never unpickles what a kernel's process wrote."""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
from typing import Any

ALIGN = 64
_MAX_MESSAGE = 64 << 20


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    connection.sendall(struct.pack("<Q", len(data)) + data)


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """The next message; None when the other side is gone."""
    head = _exactly(connection, 8)
    if head is None:
        return None
    (length,) = struct.unpack("<Q", head)
    if length > _MAX_MESSAGE:
        return None
    data = _exactly(connection, length)
    if data is None:
        return None
    message: dict[str, Any] = json.loads(data)
    return message


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = connection.recv(min(count - len(parts), 1 << 20))
        except (ConnectionError, OSError):
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)


class Arena:
    """Shared memory for tensors, grown by the parent, seen by both."""

    def __init__(self, handle: int | None = None) -> None:
        self.handle = os.memfd_create("assay") if handle is None else handle
        self._map: mmap.mmap | None = None

    def view(self, size: int) -> memoryview:
        """The first `size` bytes, mapped."""
        size = max(size, 1)
        if os.fstat(self.handle).st_size < size:
            os.ftruncate(self.handle, size)
        if self._map is None or len(self._map) < size:
            self._map = mmap.mmap(self.handle, os.fstat(self.handle).st_size)
        return memoryview(self._map)[:size]

    def close(self) -> None:
        os.close(self.handle)


def tensor(view: memoryview, at: int, dtype: Any, shape: list[int] | tuple[int, ...]) -> Any:
    """A tensor on the arena's own memory."""
    import math

    import torch

    count = math.prod(shape)
    if count == 0:
        return torch.empty(tuple(shape), dtype=dtype)
    return torch.frombuffer(view, dtype=dtype, count=count, offset=at).view(tuple(shape))


def place(sizes: list[int]) -> tuple[list[int], int]:
    """Offsets for blocks of these sizes, each aligned, and the total."""
    offsets, at = [], 0
    for size in sizes:
        offsets.append(at)
        at += -(-size // ALIGN) * ALIGN
    return offsets, at
