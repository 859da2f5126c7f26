"""Triton: compiled on a GPU; interpreted, or built but not run, without one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from assay import host
from assay.artifact import Artifact
from assay.backends.base import Availability, Backend, Launch, Level, missing, no_gpu
from assay.target import Target


class Triton(Backend):
    name, title, packages = "triton", "Triton", ("triton", "torch")
    tunes_itself = True

    def availability(self, variant: str = "") -> Availability:
        if gone := missing(("triton", "pip install triton==3.7.1"), ("torch", "pip install torch")):
            return gone
        if host.runs_on_gpu():
            return Availability(Level.RUN, "", device="cuda")
        return Availability(
            Level.INTERPRET,
            f"{no_gpu()}: Triton's interpreter",
            "run it on a machine with an NVIDIA GPU",
            "triton-interpret",
        )

    def prepare(self, mode: str) -> None:
        if mode == "triton-interpret":
            from assay.backends import triton_interpreter

            triton_interpreter.patch()

    @contextlib.contextmanager
    def tracing(self, target: Target, compiler: str = "") -> Iterator[list[Launch]]:
        from assay.backends import triton_tracing

        with triton_tracing.recording(target) as launches:
            yield launches

    def instead_of_launches(self, target: Target, found: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        from assay.backends import triton_tracing

        return triton_tracing.instead_of_launches(found)

    def rewrite(self, change: Callable[[str], str], folder: Path) -> None:
        from assay.backends import rewriting

        rewriting.triton(change, folder)

    def launched(self) -> contextlib.AbstractContextManager[list[Artifact]]:
        from assay.backends import triton_tracing

        return triton_tracing.launched()


BACKEND = Triton()
