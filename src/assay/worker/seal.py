"""Inside a worker: detects whether a kernel has replaced what times and judges it, or left global settings changed.
Both are read before its file is imported and after every round."""

from __future__ import annotations

import gc
import os
import sys
import time
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
import torch.overrides
import torch.utils._python_dispatch as dispatch

from assay.worker import bound

_CLOCKS: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
    (
        time,
        "time",
        ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns", "process_time_ns", "sleep"),
    ),
    (os, "os", ("urandom",)),
    (torch.cuda, "torch.cuda", ("Event", "Stream", "CUDAGraph", "stream", "current_stream", "synchronize")),
    (torch.cuda.Event, "torch.cuda.Event", ("record", "query", "elapsed_time", "synchronize", "wait")),
    (torch.cuda.CUDAGraph, "torch.cuda.CUDAGraph", ("capture_begin", "capture_end", "replay")),
    (torch.cuda.Stream, "torch.cuda.Stream", ("synchronize", "wait_stream", "wait_event", "record_event")),
    (torch.Tensor, "torch.Tensor", ("as_strided", "view", "copy_", "fill_", "clone", "untyped_storage")),
    (torch, "torch", ("equal", "empty")),
)
_OURS = (
    "aftermath",
    "bits",
    "bound",
    "buffers",
    "change",
    "channel",
    "l2",
    "load",
    "measure",
    "messages",
    "seal",
    "serve",
    "sm_clock",
    "stopwatch",
)
"""Modules of this folder whose functions a kernel may not replace: they time and judge it."""
_CALLABLE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    type,
    type(cache(lambda: None)),
)


def _names() -> Iterator[tuple[Any, str, Any]]:
    """Yield every name that is watched: its owner, its printed form, and its current value."""
    for owner, shown, names in _CLOCKS:
        for name in names:
            yield owner, f"{shown}.{name}", getattr(owner, name, None)
    for short in _OURS:
        module = sys.modules.get(f"assay.worker.{short}")
        for name, value in list(vars(module).items()) if module else ():
            if isinstance(value, _CALLABLE):
                yield module, f"assay.worker.{short}.{name}", value
            if isinstance(value, type) and value.__module__ == getattr(module, "__name__", ""):
                yield from (
                    (value, f"{value.__qualname__}.{n}", v) for n, v in list(vars(value).items()) if callable(v)
                )


class Seal:
    """The watched names and settings before the kernel's file was imported."""

    def __init__(self) -> None:
        self._kept = [(owner, shown, value, _code(value)) for owner, shown, value in _names()]
        self._settings = settings()

    def broken(self) -> list[str]:
        """Return the names that have another value now, or whose function has other code."""
        replaced = []
        for owner, shown, value, code in self._kept:
            name = shown.rpartition(".")[2]
            now = (
                vars(owner).get(name) if isinstance(owner, type) and name in vars(owner) else getattr(owner, name, None)
            )
            if now is not value or _code(value) != code:
                replaced.append(shown)
        modes = len(torch.overrides._get_current_function_mode_stack()) + len(
            dispatch._get_current_dispatch_mode_stack()
        )
        return replaced + (["torch's operators, by a mode that was left on"] if modes else [])

    def begin(self) -> None:
        """Record the number of threads, which the harness has just set for a new round."""
        self._settings |= {name: value for name, value in settings().items() if name.endswith("threads")}

    def changed(self) -> list[str]:
        """Return the settings that have changed, as `name from old to new`."""
        now = settings()
        return [f"{n} from {old} to {now[n]}" for n, old in self._settings.items() if n in now and now[n] != old]

    def finding(self) -> tuple[str, str] | None:
        """Return the name of the detector that fired, and what the kernel did; None if it did nothing forbidden."""
        if names := self.broken():
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            return "tampered", f"the kernel replaced {', '.join(names[:3])}{more}"
        if changes := self.changed():
            return "settings", f"the kernel changed {changes[0]}, for its whole process"
        return None


def _code(value: Any) -> Any:
    return (value.__code__, value.__defaults__) if isinstance(value, types.FunctionType) else None


def settings() -> dict[str, Any]:
    """Return process-wide settings that change speed or precision."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    values: dict[str, Any] = {
        "torch's threads": torch.get_num_threads(),
        "torch's precision of fp32 products": torch.get_float32_matmul_precision(),
        "TF32 in matrix products": matmul.allow_tf32,
        "TF32 in cuDNN": cudnn.allow_tf32,
        "reduced precision in fp16 products": matmul.allow_fp16_reduced_precision_reduction,
        "reduced precision in bf16 products": matmul.allow_bf16_reduced_precision_reduction,
        "torch's default dtype": str(torch.get_default_dtype()),
        "the flushing of subnormal numbers": float(torch.tensor(1e-40) * 1.0) == 0.0,
        "the recording of gradients": torch.is_grad_enabled(),
        "Python's garbage collector": "on" if gc.isenabled() else "off",
        "the thread switching interval": sys.getswitchinterval(),
        "the process's priority": os.getpriority(os.PRIO_PROCESS, 0),
    }
    if hasattr(os, "sched_getaffinity"):
        values["the processors it may run on"] = len(os.sched_getaffinity(0))
    if "numba" in sys.modules:
        values["Numba's threads"] = sys.modules["numba"].get_num_threads()
    return values


assert bound.now is time.perf_counter_ns, "the clock must be bound before anything can replace it"
