"""Inside a worker: calls a kernel in Triton's interpreter on tensors that have addresses and no memory."""

from __future__ import annotations

import mmap
import resource
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay import backends
from assay.backends import backend
from assay.worker import channel, load
from assay.worker.execute import function_of
from assay.worker.failure import words
from assay.worker.questions import Addresses, Examined
from assay.worker.request import TensorSpec

_NOT_KERNELS = (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), str(Path(backends.__file__).parent))
_NO_RESERVE = 0x4000
"""MAP_NORESERVE of Linux, which Python's module lacks."""
_MEMORY = 2 << 30
"""Bytes beside the tensors that the call may allocate: a launcher that computes with such tensors shall fail."""


def examine(request: Addresses, arena: channel.Arena) -> Examined:
    """Answer where an address overflows, or why the launches could not be examined."""
    import torch

    from assay.backends.triton_interpreter import launch
    from assay.backends.triton_interpreter.addresses import Overflow, Unexamined, without_memory

    call = request.call
    op, function = function_of(call)
    launch.most = 1 << 62
    with without_memory(request.programs, request.operations) as done:
        try:
            with _little_memory(sum(_bytes(spec) for spec in call.tensors)):
                tensors = {spec.name: _reserved(spec, torch) for spec in call.tensors if not spec.alias}
                tensors |= {spec.name: tensors[spec.alias] for spec in call.outputs if spec.alias}
                args, keywords = load.arguments(call, op, tensors)
                backend(call.kernel.address.backend).invoke(function, args, keywords)
        except Exception as error:
            causes = list(_causes(error))
            found = next((c for c in causes if isinstance(c, Overflow | Unexamined)), error)
            if isinstance(found, Overflow):
                place = _place(found, str(call.kernel.file))
                return Examined(done.programs, found.parameter, found.index, found.stores, found.program, *place)
            why = words(found) if isinstance(found, Unexamined) else f"{type(found).__name__}: {words(causes[-1])}"
            return Examined(done.programs, trouble=why.splitlines()[0][:300])
    return Examined(done.programs, trouble="" if done.programs else "it launches nothing")


def _reserved(spec: TensorSpec, torch: Any) -> Any:
    """Return a tensor on a range of addresses, with nothing before and behind it where an offset that overflows would
    lead to. No page of it exists until it is used."""
    memory = mmap.mmap(-1, _bytes(spec), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    whole = torch.frombuffer(memory, dtype=torch.uint8, offset=_around(spec), count=max(spec.span, spec.itemsize))
    return whole.view(getattr(torch, spec.dtype)).as_strided(spec.shape, spec.strides)


def _around(spec: TensorSpec) -> int:
    return (1 << 32) * spec.itemsize


def _bytes(spec: TensorSpec) -> int:
    """Return how many addresses a tensor takes, in whole pages."""
    return 2 * _around(spec) + -(-max(1, spec.span) // mmap.PAGESIZE) * mmap.PAGESIZE


@contextmanager
def _little_memory(reserved: int) -> Iterator[None]:
    """Limit the memory of this process to what it has, what is reserved, and a little."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + reserved + _MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _causes(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    while one is not None:
        yield one
        one = one.__cause__ or one.__context__


def _place(error: BaseException, file: str) -> tuple[str, int]:
    """Return the file and line of the access: in the kernel's own file if it is there."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_NOT_KERNELS)]
    own = [f for f in frames if f.filename == file] or frames
    return (own[-1].filename, own[-1].lineno or 0) if own else ("", 0)
