"""Inside a worker: circumstances that expose a race and under which a correct kernel's result stays right.

`order`: the order in which an interpreter runs the programs of a grid. `busy`: another thread moves memory while a CPU
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
"""Waves of blocks that occupy the device, and nanoseconds for each: 8 ms, far more than it takes to start the call."""
_BYTES, _COPIES = 1 << 26, 160
"""Bytes, more than a cache holds, and how often they are copied, to keep a fast memory busy for 5 ms."""
T = TypeVar("T")
_Thread = threading.Thread
_WORDS, _STAY = {"nan": 0xFFFFFFFF, "number": 0x4F4F4F4F}, 5_000
"""Words left in shared memory, and nanoseconds that the blocks that write them stay. All ones is NaN in every float
format, and −1."""
_Stream, on_stream, _copy = torch.cuda.Stream, torch.cuda.stream, torch._C.TensorBase.copy_


@contextlib.contextmanager
def disturbed(request: Try) -> Iterator[None]:
    """Apply the order and the busy thread of the request while the context is open."""
    with contextlib.ExitStack() as open_:
        if request.order:
            open_.enter_context(ordered(request.call.mode, request.order))
        if request.busy:
            open_.enter_context(_busy())
        yield


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    """Run a thread that copies memory without Python's lock while the context is open."""
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
    """Return or raise what the work does, in a thread that nothing has run in before."""
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
    """Return the usual stream of the kernel, its stream under load, and that of the load. Blocks of the second get a
    free multiprocessor first, even before those that a kernel puts on a stream of its own."""
    return _Stream(), _Stream(priority=-1), _Stream()


def load(kind: str) -> None:
    """Put the load on its stream; nothing waits for it. `blocks` puts nothing without a compiler for CUDA C++."""
    with on_stream(streams()[2]):
        if kind == "memory":
            source, target = _memory()
            for _ in range(_COPIES):
                _copy(target, source)
        elif (occupy := _kernel("occupy")) is not None:
            occupy(2 * _multiprocessors() * _WAVES, 1024, _WAVE)


def leave(kind: str) -> None:
    """Fill the shared memory of the GPU, in the order of the current stream, with NaN in every format (`nan`), with
    numbers (`number`), or with barriers whose first phase is complete (`barriers`). A kernel reads them where it has
    not written, or waits at one that it has not initialised."""
    words = [_WORDS[kind]] if kind in _WORDS else []
    if (kernel := _kernel("leave_words" if words else "leave_barriers")) is not None:
        kernel.unseen(5 * _multiprocessors(), 128, *words, _STAY)


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
    """Return a kernel of disturb.cu, built; None without a compiler for CUDA C++, as where only Triton is installed."""
    try:
        from assay.backends.cuda import Source

        return Source(Path(__file__).with_name("disturb.cu"))[name].built()
    except (ImportError, AssayError):
        return None


def prepare() -> None:
    """Build and allocate what the load needs, before any kernel's file is imported."""
    streams(), _memory(), _kernel("occupy"), _kernel("leave_words"), _kernel("leave_barriers")
