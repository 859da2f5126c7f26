"""The interface of every backend."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from assay import host
from assay.artifact import Artifact
from assay.target import Target

TOO_MANY = "more than are interpreted"
"""Part of an exception's message: a launch is too large for an interpreter. The kernel may still be correct."""


class Level(StrEnum):
    RUN = "run"
    INTERPRET = "interpret"
    """Runs, but not as compiled code: in an interpreter or a simulator."""
    COMPILE = "compile"
    MISSING = "missing"


@dataclass(frozen=True)
class Availability:
    level: Level
    reason: str
    """Why the level is not higher."""
    fix: str = ""
    """The command or step that raises it."""
    mode: str = "native"
    """The mode in which its worker is started: native, static (for timing), triton-interpret or numba-sim."""
    device: str = "cpu"
    """The device of its tensors."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch recorded while tracing: what was built and how it would be started."""

    artifact: Artifact
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    cluster: int = 1
    """Blocks of a thread-block cluster, neighbours along x."""


class Backend:
    name = ""
    title = ""
    packages: tuple[str, ...] = ()
    """Distributions whose versions belong in a record's provenance."""

    timed_mode = "native"
    """The mode in which a kernel that runs natively is timed."""

    tunes_itself = False
    """Whether kernels may time themselves when they are first called on a GPU, which must be quiet then."""

    def availability(self, variant: str = "") -> Availability:
        raise NotImplementedError

    def chosen(self, mode: str, variant: str) -> str:
        """Return how a peer is run, for the record; empty if there is nothing to choose."""
        return ""

    def built_for(self, target: Target) -> Target:
        """Return the target that kernels are built for if they run on a device of this target."""
        return target

    # The rest is called inside a worker.

    def prepare(self, mode: str) -> None:
        """Patch the toolchain before any kernel file is imported. `mode`: that of the worker, or `build` if kernels
        are only built."""

    def on_current_stream(self) -> contextlib.AbstractContextManager[Any]:
        """While open, calls use torch's current stream. Languages that follow torch need no override."""
        return contextlib.nullcontext()

    def invoke(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a kernel on the current stream."""
        with self.on_current_stream():
            return function(*args, **kwargs)

    def tracing(self, target: Target, compiler: str = "") -> contextlib.AbstractContextManager[list[Launch]]:
        """While open, launches are built for `target` and listed instead of started. `compiler`: which one, if a
        language has several (CUDA C++: nvrtc, nvcc)."""
        raise NotImplementedError(f"{self.name} cannot build without running")

    def instead_of_launches(self, target: Target, found: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        """While open, nothing is built or launched: `found` is called in place of each launch on `target`."""
        raise NotImplementedError(f"{self.name} cannot be run without launching")

    def launched(self) -> contextlib.AbstractContextManager[list[Artifact]]:
        """While open, the code that is actually launched is listed; nothing if the language does not expose it."""
        return contextlib.nullcontext([])

    def rewrite(self, change: Callable[[str], str], folder: Path) -> None:
        """Apply `change` to all PTX from now on, before it is assembled; do nothing if the language hides it. A
        compiler's cache of builds is then in the folder, where no other process looks."""

    def refusal(self, dtype: str) -> str:
        """Return the toolchain's error message for a dtype that it does not support; empty if it does."""
        return ""


def missing(*modules: tuple[str, str]) -> Availability | None:
    """Return the availability that reports the first module that is not installed; None if all are."""
    for module, fix in modules:
        if not host.has(module):
            return Availability(Level.MISSING, f"{module} is not installed", fix)
    return None


def no_gpu() -> str:
    if host.gpu() is None:
        return "no GPU here"
    return "torch here was built without CUDA"
