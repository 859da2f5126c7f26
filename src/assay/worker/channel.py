"""The private channel between parent and worker: length-prefixed JSON on a socket, tensors in shared memory.

Only JSON and raw bytes are used: the parent never unpickles what a kernel's process wrote, and trusts no byte of it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import mmap
import os
import re
import socket
import struct
from typing import Any

ALIGN = 64
_MAX_MESSAGE = 64 << 20
LOST = 113
"""Exit code of a worker that cannot answer any more because its channel was closed or replaced."""
_AT_ONCE = 1 << 20
"""The most bytes taken from a socket in one call."""
_LARGE = 256 << 20
_HEAD = struct.Struct("<Q")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
"""Half a surrogate pair cannot be written to a file, nor a NUL to a database, and an escape changes a terminal."""


class Damaged(Exception):
    """What arrived is no message; the text says what it was instead."""


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    connection.sendall(_HEAD.pack(len(data)) + data)


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Wait for the next message and return it; None if the other side is gone. Raise Damaged if it is no message."""
    reader = Reader(connection)
    while True:
        # Read no more than this one message: what follows it stays in the socket for the next call.
        if not reader.read(reader.missing):
            if reader.pending:
                raise Damaged("half a message, and then the end")
            return None
        if (message := reader.message()) is not None:
            return message


class Reader:
    """Assembles messages from whatever has arrived on a socket so far."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._data = bytearray()

    @property
    def pending(self) -> int:
        """Bytes that have arrived and belong to no message yet."""
        return len(self._data)

    @property
    def missing(self) -> int:
        """Bytes that the next message still lacks, as far as is known. Raises Damaged if it is too long."""
        return max(0, (_HEAD.size if (end := self._end()) is None else end) - len(self._data))

    def read(self, most: int = _AT_ONCE) -> bool:
        """Read what has arrived, or wait for it; return False if the other side is gone."""
        try:
            part = self._connection.recv(min(max(most, 1), _AT_ONCE))
        except OSError:
            return False
        self._data += part
        return bool(part)

    def message(self) -> dict[str, Any] | None:
        """Return the next message; None while it is incomplete. Raise Damaged if it is no message."""
        end = self._end()
        if end is None or len(self._data) < end:
            return None
        data = bytes(self._data[_HEAD.size : end])
        del self._data[:end]
        return decoded(data)

    def _end(self) -> int | None:
        if len(self._data) < _HEAD.size:
            return None
        (length,) = _HEAD.unpack_from(self._data)
        if length > _MAX_MESSAGE:
            raise Damaged(f"a message of {length} bytes was announced; {_MAX_MESSAGE} are the most")
        return _HEAD.size + int(length)


def decoded(data: bytes) -> dict[str, Any]:
    """Return the object that these bytes encode. Raise Damaged if they encode none."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:  # ValueError also for bytes that are not UTF-8
        raise Damaged(f"{len(data)} bytes that are not JSON ({type(error).__name__})") from None
    if not isinstance(message, dict):
        raise Damaged(f"JSON that is no object but {_json_name(message)}")
    cleaned: dict[str, Any] = _clean(message) if b"\\u" in data or b"\x7f" in data else message
    return cleaned


def _json_name(value: object) -> str:
    if value is None:
        return "null"
    return {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}[type(value)]


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_clean(v) for v in value]
    return {printable(k): _clean(v) for k, v in value.items()} if isinstance(value, dict) else value


def printable(text: str) -> str:
    """Return the text with those characters replaced that could not be stored or would control a terminal."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


class Arena:
    """Shared memory for tensors, which either side can grow. It can never shrink: reading a page that the other side
    removed would end this process."""

    def __init__(self, handle: int | None = None) -> None:
        if handle is None:
            handle = os.memfd_create("assay", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            with contextlib.suppress(OSError):  # a system without seals
                fcntl.fcntl(handle, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
        self.handle = handle
        self._map: mmap.mmap | None = None

    @property
    def size(self) -> int:
        return os.fstat(self.handle).st_size

    def view(self, size: int) -> memoryview:
        """Return the first `size` bytes, mapped. Raise OSError if there is no memory for them."""
        size = max(size, 1)
        if (now := self.size) < size:
            _refuse_beyond_memory(size - now)
            # Reserve the memory: otherwise touching a page that cannot be had would end the process.
            try:
                os.posix_fallocate(self.handle, now, size - now)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
                    raise
                os.ftruncate(self.handle, size)
        if self._map is None or len(self._map) < size:
            self._map = mmap.mmap(self.handle, size)
        return memoryview(self._map)[:size]

    def close(self) -> None:
        os.close(self.handle)


def _refuse_beyond_memory(size: int) -> None:
    """Raise OSError if memory is short: the system would not refuse it, but end a process of its choice."""
    if size > _LARGE:
        import psutil

        if size > psutil.virtual_memory().available:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


def tensor(view: memoryview, at: int, dtype: Any, shape: list[int] | tuple[int, ...]) -> Any:
    """Return a tensor on the arena's own memory."""
    import math

    import torch

    count = math.prod(shape)
    if count == 0:
        return torch.empty(tuple(shape), dtype=dtype)
    return torch.frombuffer(view, dtype=dtype, count=count, offset=at).view(tuple(shape))


def place(sizes: list[int]) -> tuple[list[int], int]:
    """Return aligned offsets for blocks of these sizes, and the total."""
    offsets, at = [], 0
    for size in sizes:
        offsets.append(at)
        at += -(-size // ALIGN) * ALIGN
    return offsets, at
