"""Builds everything that a kernel would launch on a workload, for any target, without a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Self

from assay.artifact import Artifact
from assay.backends import Level, here
from assay.backends.base import Launch
from assay.errors import AssayError, BuildError, LaunchError, SourceError, UsageError
from assay.kernel import Kernel
from assay.target import Target
from assay.worker import Pool, Worker, WorkerLost
from assay.worker.failure import Failure, Refused
from assay.worker.questions import Built, Compile
from assay.worker.request import Call
from assay.workload import Workload

LANGUAGES = ("cuda", "cupy", "triton", "numba")
"""Languages whose kernels are compiled to GPU machine code that can be inspected without running it."""
COMPILERS = ("nvrtc", "nvcc")
_LINE = re.compile(r"^(?P<file>[^\s(]+)\((?P<line>\d+)\): (?:catastrophic )?error", re.MULTILINE)
"""The location of an error in the output of NVRTC and nvcc."""


def launches(
    kernel: Kernel,
    workload: Workload,
    target: Target,
    pool: Pool,
    parameters: Mapping[str, Any] | None = None,
    compiler: str = "",
) -> list[Launch]:
    """Return what the kernel would launch on the workload, in order, with PTX, cubin and intermediate code.
    `parameters` are the tunables that are not at their defaults; `compiler` is for CUDA C++ only."""
    with Builder(kernel, pool) as builder:
        return builder.launches(workload, target, parameters, compiler)


class Builder:
    """Builds one kernel repeatedly in the same process, which saves starting it and importing the kernel's file. A
    context manager; not thread-safe."""

    def __init__(self, kernel: Kernel, pool: Pool) -> None:
        self.kernel, self.pool = kernel, pool
        self._worker: Worker | None = None

    def launches(
        self, workload: Workload, target: Target, parameters: Mapping[str, Any] | None = None, compiler: str = ""
    ) -> list[Launch]:
        """Return what the kernel would launch, like the function above. If a build ends a process that built others
        before, it is tried once more in a new process: the loss may have another cause than this build."""
        _refuse(self.kernel, target, compiler)
        request = Compile(Call.of(self.kernel, workload, "native", parameters or {}), str(target), compiler)
        kept = self._worker is not None
        try:
            try:
                return self._built(request)
            except WorkerLost:
                if not kept:
                    raise
                return self._built(request)
        except Refused as refused:
            raise _error(refused.failure) from None
        except WorkerLost as lost:
            where = str(self.kernel.file or "")
            raise BuildError(f"the build ended without an answer: {lost.detail}", where=where) from None

    def _built(self, request: Compile) -> list[Launch]:
        if self._worker is None:
            self._worker = self.pool.worker(self.kernel.address.backend, "native")
        try:
            answer = self._worker.ask(request)
            return list(_read(answer, self._worker.memory(answer.shared_bytes)))
        except WorkerLost:
            self.close()
            raise

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refuse(kernel: Kernel, target: Target, compiler: str) -> None:
    language = kernel.address.backend
    if compiler and compiler not in COMPILERS:
        raise UsageError(f"no compiler called '{compiler}'", fix=f"one of: {', '.join(COMPILERS)}")
    if compiler and language != "cuda":
        raise UsageError(f"{kernel} is not built by {compiler}", fix="a compiler is chosen for CUDA C++ alone")
    if language not in LANGUAGES:
        raise UsageError(
            f"{kernel} cannot be inspected: Assay builds no machine code for {language} kernels",
            fix=f"these can be inspected: {', '.join(LANGUAGES)}",
        )
    if not target.name.startswith("sm_"):
        raise UsageError(f"{kernel} is not built for {target}", fix="a GPU architecture such as sm_80, sm_90, sm_100")
    availability = here(kernel)
    if availability.level is Level.MISSING:
        raise AssayError(f"{kernel} cannot be built: {availability.reason}", fix=availability.fix)


def _read(built: Built, memory: memoryview) -> Iterator[Launch]:
    at = 0
    for launch in built.launches:
        parts, a = {}, launch.artifact
        for name, size in launch.parts.items():
            parts[name] = bytes(memory[at : at + size])
            at += size
        artifact = Artifact(
            name=a["name"],
            symbol=a["symbol"],
            target=Target(a["target"]),
            compiler=a["compiler"],
            ptx=parts.pop("ptx"),
            cubin=parts.pop("cubin"),
            text_hash=a["text_hash"],
            source_hash=a["source_hash"],
            registers=a["registers"],
            shared=a["shared"],
            spills=a["spills"],
            doubt=a["doubt"],
            ir={name.removeprefix("ir."): data.decode() for name, data in parts.items()},
        )
        yield Launch(artifact, tuple(launch.grid), tuple(launch.block), launch.shared, launch.cluster)


def _error(failure: Failure) -> AssayError:
    """Return the error that the worker raised, located at the line that the compiler reports."""
    if failure.type == LaunchError.__name__:
        return LaunchError(failure.what, where=failure.where, fix=failure.fix)
    kind = {"UsageError": UsageError, "SourceError": SourceError}.get(failure.type, BuildError)
    what = failure.what if failure.ours else f"{failure.type}: {failure.message}"
    where = failure.where
    if place := next((m for m in _LINE.finditer(what) if m["file"] == where), _LINE.search(what)):
        where = f"{place['file']}:{place['line']}"
    return kind(what, where=where, fix=failure.fix)
