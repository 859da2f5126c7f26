"""Inside a worker: the tensors of one place, and raw copies of what a call left in them.

On a CPU the tensors lie in the arena itself: the parent sees every byte, and only the outputs are copied, when the call
returns. On a GPU the arena's bytes are copied to the device before a call. After it the outputs are copied back in the
order of the current stream alone, so that work on another stream is missing from them; then, once the whole device is
idle, everything is copied. The copies use the C library and the CUDA driver, bound before any kernel's file is
imported, so that replaced functions of torch do not affect them."""

from __future__ import annotations

import ctypes
from ctypes import memmove
from functools import cache
from typing import Any

import torch

from assay.worker.fence import Chunk, Fences
from assay.worker.guard import inside, room
from assay.worker.questions import Try

Copies = list[tuple[int, int, int]]
"""Source address, target address and bytes of each copy."""
_pointer = torch._C.TensorBase.data_ptr
_dense = torch._C.TensorBase.contiguous
_clone, _fill, _copy = torch._C.TensorBase.clone, torch._C.TensorBase.fill_, torch._C.TensorBase.copy_
_empty, _frombuffer, _uint8, _sleep = torch.empty, torch.frombuffer, torch.uint8, torch.cuda._sleep


class HostPlace:
    """Tensors on the arena's own memory: the same objects for every call at this place, as in a user's loop."""

    def __init__(self, request: Try, memory: memoryview) -> None:
        call = request.call
        self._arena = _pointer(_frombuffer(memory, dtype=_uint8))
        self._specs = {spec.name: spec for spec in call.tensors}
        self._outputs = call.outputs
        self._copies = request.copies
        self._at = {name: places[request.place] for name, places in request.places.items()}
        self._left_off = dict.fromkeys(self._at, 0)
        """Bytes at the beginning of a buffer that have no memory here."""
        self.buffers = {name: self._buffer(memory, name) for name in self._at}
        self.tensors = {
            name: inside(buffer, self._specs[name], self._left_off[name]) for name, buffer in self.buffers.items()
        }
        for spec in call.outputs:
            if spec.alias:
                self.tensors[spec.name] = self.tensors[spec.alias]

    def _buffer(self, memory: memoryview, name: str) -> Any:
        return _frombuffer(memory, dtype=_uint8, count=room(self._specs[name]).size, offset=self._at[name])

    def _left_in_outputs(self) -> Copies:
        """Return the copies to make of the outputs at this place."""
        copies = []
        for spec in self._outputs:
            holder = spec.alias or spec.name
            where = room(self._specs[holder])
            start = _pointer(self.buffers[holder]) + where.start - self._left_off[holder]
            copies.append((start, self._arena + self._copies[spec.name], where.span))
        return copies

    def _left_in(self, returned: dict[str, Any]) -> Copies:
        return [(_pointer(v), self._arena + self._copies[n], self._specs[n].bytes) for n, v in returned.items()]

    def keep(self, returned: dict[str, Any] | None, stream: int = 0) -> None:
        """Copy the outputs as they are now: those returned, or those of this place."""
        dense = {n: _dense(v) for n, v in returned.items()} if returned is not None else None
        for source, target, size in self._left_in_outputs() if dense is None else self._left_in(dense):
            self._copy_out(target, source, size, stream)

    def _copy_out(self, target: int, source: int, size: int, stream: int) -> None:
        memmove(target, source, size)

    def bands(self) -> list[tuple[int, int, str]]:
        """Return the ranges around the tensors: begin, end, and where that is in words."""
        bands = []
        for name, buffer in self.buffers.items():
            start, where = _pointer(buffer), room(self._specs[name])
            bands.append((start, start + where.start, f"before the begin of `{name}`"))
            bands.append((start + where.end, start + where.size, f"behind the end of `{name}`"))
        return bands

    def finish(self) -> None:
        """Copy everything else to the arena. Here it is there already."""

    def close(self) -> None:
        """Release the memory of this place for other uses."""


class DevicePlace(HostPlace):
    """Tensors on the GPU."""

    device = "cuda"

    def __init__(self, request: Try, memory: memoryview) -> None:
        super().__init__(request, memory)
        self._driver = _Driver()

    def _buffer(self, memory: memoryview, name: str) -> Any:
        return _empty(room(self._specs[name]).size, dtype=_uint8, device=self.device)

    def load(self) -> None:
        """Copy the arena's bytes to the device and wait until it is idle."""
        for name, buffer in self.buffers.items():
            self._driver.to_device(_pointer(buffer), self._in_arena(name), buffer.numel())
        self._driver.wait_for_device()

    def _in_arena(self, name: str) -> int:
        return self._arena + self._at[name] + self._left_off[name]

    def _copy_out(self, target: int, source: int, size: int, stream: int) -> None:
        self._driver.to_host(target, source, size, stream)

    def delay_inputs(self, names: list[str], wait: bool) -> None:
        """Make the inputs arrive late on the current stream: other streams see garbage unless `wait`."""
        chosen = [self.buffers[n] for n in names]
        staged = [_clone(b) for b in chosen]
        for buffer in chosen:
            _fill(buffer, 0x3B)
        self._driver.wait_for_device()
        _sleep(4_000_000)  # about 2 ms
        for buffer, values in zip(chosen, staged, strict=True):
            _copy(buffer, values)
        if wait:
            self._driver.wait_for_device()

    def finish(self) -> None:
        self._driver.wait_for_device()
        for name, buffer in self.buffers.items():
            self._driver.to_host(self._in_arena(name), _pointer(buffer), buffer.numel(), 0)
        self._driver.wait_for_device()


class FencedPlace(DevicePlace):
    """Tensors on the GPU with no memory behind them, or none before them, so that a kernel that goes past that end
    fails. The bands that the parent checks are only on the other side."""

    def __init__(self, request: Try, memory: memoryview) -> None:
        self._side = request.fence
        self._chunks: list[Chunk] = []
        super().__init__(request, memory)

    def _buffer(self, memory: memoryview, name: str) -> Any:
        where = room(self._specs[name])
        chunk = _fences().take(where.size)
        if chunk is None:
            return super()._buffer(memory, name)
        self._chunks.append(chunk)
        end = where.start + max(where.span, self._specs[name].itemsize)  # an empty tensor has an address, too
        fenced = chunk.behind(end) if self._side == "behind" else chunk.before(where.start, where.size)
        buffer, self._left_off[name] = fenced
        return buffer

    def close(self) -> None:
        for chunk in self._chunks:
            _fences().give_back(chunk)
        self._chunks.clear()


@cache
def _fences() -> Fences:
    return Fences()


class _Driver:
    """Functions of the CUDA driver. A host pointer may be any memory; such copies end before the call does."""

    def __init__(self) -> None:
        library = ctypes.CDLL("libcuda.so.1")
        self._up, self._down = library.cuMemcpyHtoDAsync_v2, library.cuMemcpyDtoHAsync_v2
        self._stream, self._device = library.cuStreamSynchronize, library.cuCtxSynchronize
        self._up.argtypes = (ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
        self._down.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)
        self._stream.argtypes = (ctypes.c_void_p,)

        self._words = library.cuGetErrorString

    def _check(self, code: int) -> None:
        if code:
            words = ctypes.c_char_p()
            self._words(code, ctypes.byref(words))
            raise RuntimeError(f"CUDA error: {(words.value or b'unknown').decode()} (code {code})")

    def to_device(self, target: int, source: int, size: int) -> None:
        if size:
            self._check(self._up(target, source, size, None))

    def to_host(self, target: int, source: int, size: int, stream: int) -> None:
        if size:
            self._check(self._down(target, source, size, stream))
            self._check(self._stream(stream))

    def wait_for_device(self) -> None:
        self._check(self._device())
