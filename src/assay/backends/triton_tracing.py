"""Builds with Triton's own launch path (binder, specialization and compiler) and a stand-in for the driver, for any
target. Nothing is launched."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay import host
from assay.artifact import TO_BE_TUNED, Artifact
from assay.backends.base import Launch
from assay.backends.nvrtc import describe
from assay.errors import BuildError, UsageError
from assay.isa.ptx import architecture
from assay.target import Target

_IR = ("ttir", "ttgir", "llir")
_OPTIONS: dict[str, Any] = {"num_warps": None, "num_stages": None, "num_ctas": 1, "maxnreg": None}
"""Launch options that are part of an instance's name, each with the value at which it is left out."""
own_cache: Path | None = None
"""A cache folder for this process alone, if others must not find what it builds."""


class _Driver:
    """The part of a driver that the launch path uses before anything is loaded."""

    def __init__(self, target: Target) -> None:
        from triton.backends.compiler import GPUTarget

        major, minor = target.capability
        self._target = GPUTarget("cuda", 10 * major + minor, 32)
        self.device = f"assay: {target}"
        """A name that no real device has: Triton caches compiled kernels by device."""

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> str:
        return self.device

    def get_current_stream(self, device: object) -> int:
        return 0


@contextlib.contextmanager
def recording(target: Target) -> Iterator[list[Launch]]:
    """While open, launches of Triton kernels are built for `target` and listed. Tensors may be on any device; only
    their dtypes and the alignment of their data pointers matter."""
    from triton import knobs
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    if knobs.runtime.interpret:
        raise UsageError("Triton's interpreter compiles nothing", fix="build in a worker of mode native")
    launches: list[Launch] = []
    ours, active = _Driver(target), driver._active
    run, tune = JITFunction.run, Autotuner.run
    choices = [0]

    def build(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        try:
            with _compiling(self):
                kernel = run(self, *args, grid=grid, warmup=True, **kwargs)  # a warm-up: all but the launch
                if callable(grid):
                    *_, binder = self.device_caches[ours.device]
                    grid = grid(binder(*args, **kwargs)[0])
        finally:
            self.device_caches.pop(ours.device, None)
        if 0 not in grid:
            launches.append(_launch(kernel, tuple(grid), choices[0]))
        return kernel

    def choose(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Take the first configuration, because only a GPU can time them; the kernel's name says so."""
        every, self.nargs = self.configs, dict(zip(self.arg_names, args, strict=False))
        self.configs, choices[0] = self.prune_configs(kwargs)[:1], len(every)
        try:
            return tune(self, *args, **kwargs)
        finally:
            self.configs, choices[0] = every, 0

    JITFunction.run, Autotuner.run = build, choose
    driver.set_active(ours)
    try:
        yield launches
    finally:
        JITFunction.run, Autotuner.run = run, tune
        driver.set_active(active)


@contextlib.contextmanager
def instead_of_launches(found: Callable[[], None]) -> Iterator[None]:
    """While open, `found` is called in place of each launch of a Triton function."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    run, tune = JITFunction.run, Autotuner.run

    def pass_over(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        if callable(grid) or 0 not in grid:
            found()

    JITFunction.run, Autotuner.run = pass_over, lambda self, *args, **kwargs: found()
    try:
        yield
    finally:
        JITFunction.run, Autotuner.run = run, tune


@contextlib.contextmanager
def launched() -> Iterator[list[Artifact]]:
    """While open, the code that is actually launched is listed. The interpreter launches nothing."""
    from triton import knobs
    from triton.runtime.jit import JITFunction

    seen: list[Artifact] = []
    if knobs.runtime.interpret:
        yield seen
        return
    run = JITFunction.run

    def launch(self: Any, *args: Any, warmup: bool, **kwargs: Any) -> Any:
        with _caching(self):  # what was built without a GPU is not built again
            kernel = run(self, *args, warmup=warmup, **kwargs)
        if kernel is not None and not warmup:
            seen.append(_artifact(kernel, 0))
        return kernel

    JITFunction.run = launch
    try:
        yield seen
    finally:
        JITFunction.run = run


@contextlib.contextmanager
def _compiling(function: Any) -> Iterator[None]:
    """Use the cache of the function's file, and suppress what Triton prints about a failure: the error contains it."""
    with _caching(function), contextlib.redirect_stdout(io.StringIO()):
        try:
            yield
        except Exception as error:
            raise _refusal(function, error) from error


@contextlib.contextmanager
def _caching(function: Any) -> Iterator[None]:
    """Use one Triton cache per file. Its key lacks the file's name, which is in the line table."""
    from triton import knobs

    file = function.fn.__code__.co_filename
    with knobs.cache.scope():
        knobs.cache.dir = str(
            (own_cache or host.cache_folder() / "triton") / hashlib.sha256(file.encode()).hexdigest()[:16]
        )
        yield


def _refusal(function: Any, error: Exception) -> BuildError:
    """Return the compiler's message, at the line of the innermost function that it was compiling."""
    from triton.compiler.errors import CompilationError
    from triton.runtime.jit import get_jit_fn_file_line

    where, line, message = function, 1, f"{type(error).__name__}: {error}"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, CompilationError):
            message = str(cause)
            if callee := next((f for f in _called(function) if f.src == cause.src), None):
                where, line = callee, getattr(cause.node, "lineno", 1)
        cause = cause.__cause__
    file, first = get_jit_fn_file_line(where)
    return BuildError(
        f"Triton refused {function.__name__}:\n{message}",
        where=f"{file}:{first + line - 1}",
        fix="fix the source at the line named above",
    )


def _called(function: Any) -> list[Any]:
    """Return a Triton function and all functions that it calls by name, directly or not."""
    from triton.runtime.jit import JITFunction

    functions = [function]
    for caller in functions:
        names = inspect.getclosurevars(caller.fn)
        for value in (*names.globals.values(), *names.nonlocals.values()):
            if isinstance(value, JITFunction) and not any(value is f for f in functions):
                functions.append(value)
    return functions


def _launch(kernel: Any, grid: tuple[int, ...], choices: int) -> Launch:
    held = kernel.metadata
    grid = (grid[0] * held.num_ctas, *grid[1:])  # CUDA's grid counts blocks, Triton's counts clusters
    return Launch(_artifact(kernel, choices), grid, (held.num_warps * held.warp_size,), held.shared)


def _artifact(kernel: Any, choices: int) -> Artifact:
    import triton
    from triton.backends.nvidia.compiler import get_ptxas

    ptx, cubin = kernel.asm["ptx"].encode(), kernel.asm["cubin"]
    built_for = architecture(kernel.asm["ptx"])
    assert built_for
    artifact = describe(
        _name(kernel, choices),
        kernel.metadata.name,
        Target(built_for),  # Triton builds sm_90 as sm_90a
        f"triton {triton.__version__}, ptxas {get_ptxas(kernel.metadata.target.arch).version}",
        ptx,
        cubin,
        kernel.src.fn.cache_key[:16],
    )
    return replace(artifact, ir={k: kernel.asm[k] for k in _IR if k in kernel.asm})


def _name(kernel: Any, choices: int) -> str:
    """Return the instance with its specialization, in the notation of Triton's ahead-of-time compiler: `*fp32:16` is a
    pointer and `i32:16` a number known to be divisible by 16, `n=1` a value known to be 1."""
    source, parts = kernel.src, []
    for index, (name, kind) in enumerate(source.signature.items()):
        if kind == "constexpr":
            parts.append(f"{name}={source.constants.get((index,))}")
        else:
            facts = dict(source.attrs.get((index,), ()))
            parts.append(f"{name}: {kind}" + (f":{facts['tt.divisibility']}" if "tt.divisibility" in facts else ""))
    for option, usual in _OPTIONS.items():
        if (value := getattr(kernel.metadata, option)) != usual:
            parts.append(f"{option}={value}")
    tuned = f", the first of {choices} {TO_BE_TUNED}" if choices > 1 else ""
    return f"{source.fn.__name__}[{', '.join(parts)}]{tuned}"
