"""Inside a worker, on a GPU: memory that ends where a tensor ends, or begins where it begins.

A read outside a tensor that lies in the middle of other memory changes nothing and goes unnoticed. Here the addresses
beside the tensor are reserved and have no memory, so that the driver stops the kernel. The CUDA driver's virtual memory
calls do this for whole pages of 2 MiB; a tensor keeps its alignment of 16 bytes, so up to 15 bytes may lie between its
end and the fence. Like everything that judges, this is bound before any kernel's file is imported."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import torch

_ALIGN = 16
"""Bytes of the widest load of one thread."""
MOST = 1 << 28
"""The most bytes of a buffer that gets a fence."""
_as_tensor, _uint8 = torch.as_tensor, torch.uint8


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", _Location),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


_PINNED, _DEVICE, _READ_AND_WRITE = 1, 1, 3


@dataclass(frozen=True)
class Chunk:
    """Memory between two fences."""

    start: int
    size: int

    def tensor(self, at: int, size: int) -> Any:
        """Return its bytes from the address `at` on."""
        assert self.start <= at and at + size <= self.start + self.size
        return _as_tensor(_Bytes(at, size), device="cuda")

    def behind(self, end: int) -> tuple[Any, int]:
        """Return a buffer whose byte `end` would lie behind the fence, or less than 16 bytes before it, and 0: no bytes
        are left off at its beginning."""
        address = (self.start + self.size - end) // _ALIGN * _ALIGN
        return self.tensor(address, self.start + self.size - address), 0

    def before(self, start: int, size: int) -> tuple[Any, int]:
        """Return a buffer of `size` bytes whose byte `start` is the first behind the fence, or less than 16 bytes from
        it, and how many bytes are left off at its beginning."""
        left_off = start // _ALIGN * _ALIGN
        return self.tensor(self.start, size - left_off), left_off


class _Bytes:
    """Device memory in the form in which PyTorch accepts it from others."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


class Fences:
    """The chunks of this process, which are reused."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._free: dict[int, list[Chunk]] = {}
        self._page = 0

    def take(self, size: int) -> Chunk | None:
        """Return a chunk of at least `size` bytes; None if that is too large or the driver cannot make it."""
        if size > MOST:
            return None
        try:
            self._page = self._page or self._granularity()
            size = -(-(size + _ALIGN) // self._page) * self._page
            free = self._free.setdefault(size, [])
            return free.pop() if free else self._mapped(size)
        except _NoFence:
            return None

    def give_back(self, chunk: Chunk) -> None:
        self._free[chunk.size].append(chunk)

    def _call(self, name: str, *args: Any) -> None:
        if getattr(self._library, name)(*args):
            raise _NoFence

    def _properties(self) -> _Properties:
        device = ctypes.c_int()
        self._call("cuCtxGetDevice", ctypes.byref(device))
        return _Properties(type=_PINNED, location=_Location(_DEVICE, device.value))

    def _granularity(self) -> int:
        granularity = ctypes.c_size_t()
        self._call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(self._properties()), 0)
        return granularity.value

    def _mapped(self, size: int) -> Chunk:
        """Return new memory with a page on either side that has an address but no memory."""
        size_t, zero = ctypes.c_size_t, ctypes.c_uint64(0)
        address, handle, properties = ctypes.c_uint64(), ctypes.c_uint64(), self._properties()
        whole = size_t(size + 2 * self._page)
        self._call("cuMemAddressReserve", ctypes.byref(address), whole, size_t(0), zero, zero)
        self._call("cuMemCreate", ctypes.byref(handle), size_t(size), ctypes.byref(properties), zero)
        start = ctypes.c_uint64(address.value + self._page)
        self._call("cuMemMap", start, size_t(size), size_t(0), handle, zero)
        access = _Access(properties.location, _READ_AND_WRITE)
        self._call("cuMemSetAccess", start, size_t(size), ctypes.byref(access), size_t(1))
        return Chunk(start.value, size)


class _NoFence(Exception):
    """The driver refused because it is old or there is no memory."""
