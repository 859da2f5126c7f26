"""Inside a worker: circumstances under which an honest kernel's result stays right and a race shows.

`order`: in which order an interpreter runs the programs of a grid. `busy`: another thread moves memory while a CPU
kernel runs. `thread`: the call comes from a new thread. `load`: on a GPU another stream keeps the multiprocessors
(`blocks`) or the memory (`memory`) busy."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from ctypes import create_string_buffer, memmove
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch

from assay.backends.grid_order import ordered
from assay.errors import AssayError
from assay.worker import bound
from assay.worker.questions import Try

_WAVES, _WAVE = 40, 200_000
"""Of blocks that occupy the device, and nanoseconds for each: 8 ms, far more than the call takes to be started."""
_BYTES, _COPIES = 1 << 26, 160
"""More than a cache holds, and so often that a fast memory is busy for 5 ms."""
T = TypeVar("T")
_Thread = threading.Thread
_WORDS, _STAY = (0xFFFFFFFF, 0x4F4F4F4F), 5_000
"""Left in shared memory, and nanoseconds that the blocks which leave it stay. All ones: NaN in every float format, −1,
and for an mbarrier a phase that is over."""
_Stream, on_stream, _copy = torch.cuda.Stream, torch.cuda.stream, torch._C.TensorBase.copy_


@contextlib.contextmanager
def disturbed(request: Try) -> Iterator[None]:
    """While open, what the request asks for happens."""
    with contextlib.ExitStack() as open_:
        if request.order:
            open_.enter_context(ordered(request.call.mode, request.order))
        if request.busy:
            open_.enter_context(_busy())
        yield


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    """A thread that copies memory outside Python's lock."""
    stop, source, target = threading.Event(), create_string_buffer(1 << 22), create_string_buffer(1 << 22)

    def work() -> None:
        while not stop.is_set():
            memmove(target, source, 1 << 22)

    thread = _Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def in_a_thread(work: Callable[[], T]) -> T:
    """What the work returns or raises, done in a thread that nothing has run in before."""
    returned: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(work())
        except BaseException as error:
            failed.append(error)

    thread = _Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    for error in failed:
        raise error
    return returned[0]


def use_device() -> None:
    """Give this thread the context of the GPU, as its first use by PyTorch does."""
    bound.synchronize()


@cache
def streams() -> tuple[Any, Any, Any]:
    """For the kernel as a rule, for it under load, and for the load. Of those that wait for a free multiprocessor the
    second comes first, ahead of what a kernel puts on a stream of its own."""
    return _Stream(), _Stream(priority=-1), _Stream()


def load(kind: str) -> None:
    """Put the load on its stream; nothing waits for it. Without a compiler for CUDA C++ `blocks` puts nothing."""
    with on_stream(streams()[2]):
        if kind == "memory":
            source, target = _memory()
            for _ in range(_COPIES):
                _copy(target, source)
        elif (occupy := _kernel("occupy")) is not None:
            occupy(2 * _multiprocessors() * _WAVES, 1024, _WAVE)


def spoil(place: int) -> None:
    """In the order of the current stream: leave something in the shared memory of the GPU, which a kernel finds there
    until it writes. NaN in every format, or numbers."""
    if (kernel := _kernel("spoil")) is not None:
        kernel.unseen(5 * _multiprocessors(), 128, _WORDS[place % len(_WORDS)], _STAY)


@cache
def _memory() -> tuple[Any, Any]:
    return (
        torch.empty(_BYTES, dtype=torch.uint8, device="cuda"),
        torch.empty(_BYTES, dtype=torch.uint8, device="cuda"),
    )


@cache
def _multiprocessors() -> int:
    return torch.cuda.get_device_properties(0).multi_processor_count


@cache
def _kernel(name: str) -> Any:
    """One of disturb.cu, built; None without a compiler for CUDA C++, as where only Triton is installed."""
    try:
        from assay.backends.cuda import Source

        return Source(Path(__file__).with_name("disturb.cu"))[name].built()
    except (ImportError, AssayError):
        return None


def prepare() -> None:
    """Build and allocate what the load needs, before any kernel's file is imported."""
    streams(), _memory(), _kernel("occupy"), _kernel("spoil")
