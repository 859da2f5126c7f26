"""Inside a worker: reports its phase to the parent, because importing and compiling have limits of their own.

A compiler runs whenever a kernel is first called with new types, so the compilers are watched, not the calls."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from assay.worker.limits import Phase

_COMPILING = {
    "triton.runtime.jit": "JITFunction._do_compile",
    "cupy.cuda.compiler": "_compile_module_with_cache",
    "torch.utils.cpp_extension": "_jit_compile",
    "assay.backends.nvrtc": "build",
    "assay.backends.nvcc": "build",
}
"""The function inside which all compiling of a module happens, by module."""
_EVENTS = {"numba.core.event": "numba:compiler_lock", "numba.cuda.core.event": "numba-cuda:compiler_lock"}
"""Events that Numba sends when a thread takes its compiler lock."""

_tell: Callable[[Phase], None] = lambda now: None  # noqa: E731
_lock = threading.Lock()
_within: list[Phase] = []
_watched: set[str] = set()


def report_to(tell: Callable[[Phase], None]) -> None:
    """Call `tell` with every later change of phase. Called once, by the loop that answers the parent."""
    global _tell
    _tell = tell


@contextlib.contextmanager
def phase(now: Phase) -> Iterator[None]:
    """Report that the worker imports or compiles while the context is open. It may be nested and entered by several
    threads: the phase that was entered last and not left yet is reported."""
    enter(now)
    try:
        yield
    finally:
        leave(now)


def enter(now: Phase) -> None:
    with _lock:
        _within.append(now)
        _tell(now)


def leave(now: Phase) -> None:
    with _lock:
        if now in _within:
            del _within[len(_within) - 1 - _within[::-1].index(now)]
        _tell(_within[-1] if _within else "run")


def watch_compilers() -> None:
    """Watch the compilers that have been imported so far. Costs nothing if all of them are watched already."""
    for module, name in _COMPILING.items():
        if (loaded := sys.modules.get(module)) and module not in _watched:
            _watched.add(module)
            owner, _, function = name.rpartition(".")
            _wrap(getattr(loaded, owner, None) if owner else loaded, function)
    for module, kind in _EVENTS.items():
        if (loaded := sys.modules.get(module)) and module not in _watched:
            _watched.add(module)
            _listen(loaded, kind)
    if (loaded := sys.modules.get("torch._dynamo.callback")) and "dynamo" not in _watched:
        _watched.add("dynamo")
        with contextlib.suppress(AttributeError):  # an internal of torch that another version may lack
            loaded.callback_handler.register_start_callback(lambda *_: enter("compile"))
            loaded.callback_handler.register_end_callback(lambda *_: leave("compile"))


def _wrap(owner: Any, name: str) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def compiling(*args: Any, **kwargs: Any) -> Any:
        with phase("compile"):
            return original(*args, **kwargs)

    setattr(owner, name, compiling)


def _listen(events: Any, kind: str) -> None:
    class Compiling(events.Listener):
        def on_start(self, event: Any) -> None:
            enter("compile")

        def on_end(self, event: Any) -> None:
            leave("compile")

    with contextlib.suppress(ValueError):  # a version that knows no such event
        events.register(kind, Compiling())
