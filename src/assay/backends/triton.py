"""Triton: compiled on a GPU; interpreted, or built but not run, without one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from assay import host
from assay.artifact import Artifact
from assay.backends.base import Availability, Backend, Launch, Level, missing, no_gpu
from assay.target import Target


class Triton(Backend):
    name, title, packages = "triton", "Triton", ("triton", "torch")

    def availability(self) -> Availability:
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
            _round_to_nearest_even()
            _multiply_bf16_as_numbers()

    @contextlib.contextmanager
    def tracing(self, target: Target, compiler: str = "") -> Iterator[list[Launch]]:
        from assay.backends import triton_tracing

        with triton_tracing.recording(target) as launches:
            yield launches

    def launched(self) -> contextlib.AbstractContextManager[list[Artifact]]:
        from assay.backends import triton_tracing

        return triton_tracing.launched()


def _round_to_nearest_even() -> None:
    """Triton's interpreter truncates fp32 → bf16 where the GPU rounds; half of all values differ by one ulp."""
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    numpy: Any = np
    numpy.seterr(all="ignore")  # GPUs do not warn
    original = interpreter._convert_float

    def convert(data: Any, source: Any, destination: Any, rounding_mode: Any) -> Any:
        if source == tl.bfloat16 and destination == tl.float32:  # it loses the bits of subnormals
            return np.ascontiguousarray(data).view(np.uint16).reshape(np.shape(data)).astype(np.uint32) << np.uint32(16)
        if source != tl.float32 or destination != tl.bfloat16 or "TZ" in str(rounding_mode):
            return original(data, source, destination, rounding_mode)
        bits = np.ascontiguousarray(data).view(np.uint32).reshape(np.shape(data))
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        return np.where(np.isnan(data), np.uint32(0x7FC0), rounded).astype(np.uint16)

    interpreter._convert_float = convert


def _multiply_bf16_as_numbers() -> None:
    """The interpreter keeps bf16 as uint16, and its tl.dot multiplies those integers."""
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    original = interpreter.InterpreterBuilder.create_dot

    def widen(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        return interpreter.TensorHandle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    def create_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return original(self, widen(a), widen(b), *rest)

    interpreter.InterpreterBuilder.create_dot = create_dot


BACKEND = Triton()
