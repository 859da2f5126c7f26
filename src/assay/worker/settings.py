"""Inside a worker: settings of the whole process that a kernel must leave unchanged.

All of them are restored after a kernel's file is imported and after each call, so that no change reaches the next call.
A change that affects the results of other people's code is a finding; the rest (threads, garbage collection, …) is only
restored. The functions that read and write them are bound here, before any kernel's file is imported."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import random
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from assay.worker.questions import Change

_C: Any = torch._C
_TINY, _ONE, _HALF_ULP = 2.0**-1060, 1.0, 2.0**-53


@dataclass(frozen=True)
class Setting:
    name: str
    """As a user writes it."""
    read: Callable[[], Any]
    write: Callable[[Any], Any]
    instead: str = ""
    """How to get the effect without affecting others; empty: restored, not a finding."""

    def now(self) -> Any:
        """Return the current value; None if torch raises, because its old and new settings of precision are mixed."""
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.read()
        return None


_PRECISION = "choose the precision where the product is computed, for instance tl.dot(..., input_precision=…)"
_WITH = "use the `with` form, which puts it back"


def _full(value: Any) -> Any:
    """Return 'ieee' for 'none': both name full precision."""
    return "ieee" if value == "none" else value


def _precision(where: str, what: str) -> Setting:
    parts = [p for p in (where, what) if p not in ("generic", "all")]
    name = ".".join(["torch.backends", *parts, "fp32_precision"]).replace("cuda.conv", "cudnn.conv")
    read, write = _C._get_fp32_precision_getter, _C._set_fp32_precision_setter
    return Setting(name, lambda: _full(read(where, what)), lambda v: write(where, what, v), _PRECISION)


def _pair(name: str) -> Setting:
    """A switch that newer versions of torch return together with a second one."""
    read, write = getattr(_C, f"_get_cublas_allow_{name}"), getattr(_C, f"_set_cublas_allow_{name}")
    both: Callable[[Any], Any] = lambda v: write(*v) if isinstance(v, tuple) else write(v)  # noqa: E731
    return Setting(f"torch.backends.cuda.matmul.allow_{name}", read, both, _PRECISION)


def _autocast(device: str) -> Setting:
    read, write = torch.is_autocast_enabled, torch.set_autocast_enabled
    return Setting(f"autocast on {device}", lambda: read(device), lambda on: write(device, on), _WITH)


def _handler(number: signal.Signals) -> Setting:
    read, write = signal.getsignal, signal.signal
    return Setting(f"signal {number.name}", lambda: read(number), lambda handler: write(number, handler))


def _flushes() -> bool:
    return not (_TINY * _ONE) > 0.0


def _rounding() -> tuple[bool, bool]:
    """Return whether 1 + ½ ulp is 1 and −1 − ½ ulp is −1, as in rounding to nearest."""
    return _ONE + _HALF_ULP == 1.0, -_ONE - _HALF_ULP == -1.0


_inferring: list[Any] = []
"""Guards of inference mode, each in effect as long as it is kept."""


def _infer(on: bool) -> None:
    _inferring.append(_C._InferenceMode(on))


_fesetround = ctypes.CDLL(None).fesetround


def _known() -> list[Setting]:
    settings = [
        Setting(
            "torch.backends.cuda.matmul.allow_tf32", _C._get_cublas_allow_tf32, _C._set_cublas_allow_tf32, _PRECISION
        ),
        Setting("torch.backends.cudnn.allow_tf32", _C._get_cudnn_allow_tf32, _C._set_cudnn_allow_tf32, _PRECISION),
        Setting(
            "torch.set_float32_matmul_precision",
            _C._get_float32_matmul_precision,
            _C._set_float32_matmul_precision,
            _PRECISION,
        ),
        _pair("fp16_reduced_precision_reduction"),
        _pair("bf16_reduced_precision_reduction"),
        Setting(
            "torch.use_deterministic_algorithms",
            torch.are_deterministic_algorithms_enabled,
            torch.use_deterministic_algorithms,
            "leave it to the caller",
        ),
        Setting(
            "torch.set_default_dtype", torch.get_default_dtype, _C._set_default_dtype, "pass dtype= to what you create"
        ),
        Setting("torch.set_grad_enabled", torch.is_grad_enabled, _C._set_grad_enabled, _WITH),
        Setting("torch.inference_mode", torch.is_inference_mode_enabled, _infer, _WITH),
        Setting(
            "torch.set_flush_denormal",
            _flushes,
            torch.set_flush_denormal,
            "flush in the kernel's own arithmetic, or put it back before returning",
        ),
        Setting(
            "the rounding mode of the processor", _rounding, lambda _: _fesetround(0), "put it back before returning"
        ),
        Setting("torch.manual_seed", torch.initial_seed, torch.manual_seed, "draw from a torch.Generator of your own"),
        # Below: restored, but no finding.
        Setting("torch.set_num_threads", torch.get_num_threads, torch.set_num_threads),
        Setting("torch.backends.cudnn.benchmark", _C._get_cudnn_benchmark, _C._set_cudnn_benchmark),
        # PyTorch itself switches it off where a product in bf16 fails on a processor without bf16.
        Setting("torch.backends.mkldnn.enabled", _C._get_mkldnn_enabled, _C._set_mkldnn_enabled),
        Setting("gc", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
        Setting("sys.settrace", sys.gettrace, sys.settrace),
        Setting("sys.setprofile", sys.getprofile, sys.setprofile),
        Setting("sys.setrecursionlimit", sys.getrecursionlimit, sys.setrecursionlimit),
    ]
    settings += [_autocast(device) for device in ("cpu", "cuda")]
    if hasattr(_C, "_get_cublas_allow_fp16_accumulation"):
        settings.append(
            Setting(
                "torch.backends.cuda.matmul.allow_fp16_accumulation",
                _C._get_cublas_allow_fp16_accumulation,
                _C._set_cublas_allow_fp16_accumulation,
                _PRECISION,
            )
        )
    if hasattr(_C, "_get_fp32_precision_getter"):
        places = [
            ("generic", "all"),
            ("cuda", "all"),
            ("cuda", "matmul"),
            ("cuda", "conv"),
            ("mkldnn", "all"),
            ("mkldnn", "matmul"),
            ("mkldnn", "conv"),
        ]
        settings += [_precision(*p) for p in reversed(places)]
    settings += [_handler(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    return [*settings, *_modes(), *_numpy(), *_streams(), *_numba()]


def _modes() -> list[Setting]:
    """Return the modes on torch's stacks: torch.set_default_device and similar calls push one."""
    stacks = {
        "a torch function mode (torch.set_default_device)": ("_len_torch_function_stack", "_pop_torch_function_stack"),
        "a torch dispatch mode": ("_len_torch_dispatch_stack", "_pop_torch_dispatch_stack"),
    }
    modes = []
    for name, (length, pop) in stacks.items():
        if not hasattr(_C, length):
            continue
        count, drop = getattr(_C, length), getattr(_C, pop)

        def back(wanted: int, count: Any = count, drop: Any = drop) -> None:
            while count() > wanted:
                drop() if drop is not _C._pop_torch_dispatch_stack else drop(None)

        modes.append(Setting(name, count, back, "pass device= to what you create, or use the `with` form"))
    return modes


def _numpy() -> list[Setting]:
    if (numpy := sys.modules.get("numpy")) is None:
        return []
    set_errors = numpy.seterr
    return [Setting("numpy.seterr", numpy.geterr, lambda v: set_errors(**v))]


class _Stream:
    """A global stream of random numbers. Calls find it in two states in turn: if both leave it in the same state, they
    seeded it. To draw from it is no finding."""

    def __init__(self, get: Callable[[], Any], put: Callable[[Any], Any], seed: Callable[[int], Any]) -> None:
        self._get, self._put, self._turn = get, put, 0
        before = get()
        seed(20_011)
        self._states = (before, get())
        self._found = [_fingerprint(state) for state in self._states]
        self._left = ["", " "]
        put(before)

    def read(self) -> str:
        now = _fingerprint(self._get())
        if now == self._found[self._turn]:
            return "not seeded"
        self._left[self._turn] = now
        self._turn = 1 - self._turn
        self._put(self._states[self._turn])
        return "seeded" if self._left[0] == self._left[1] else "not seeded"


def _fingerprint(state: tuple[Any, ...]) -> str:
    """Return text that differs for different states of NumPy's or Python's generator."""
    return repr([part.tobytes() if hasattr(part, "tobytes") else part for part in state])


def _streams() -> list[Setting]:
    found = [("random.seed", _Stream(random.getstate, random.setstate, random.seed))]
    if numpy := sys.modules.get("numpy"):
        of = numpy.random
        found.append(("numpy.random.seed", _Stream(of.get_state, of.set_state, of.seed)))
    return [Setting(name, one.read, lambda _: None, "draw from a generator of your own") for name, one in found]


def _numba() -> list[Setting]:
    if (numba := sys.modules.get("numba")) is None:
        return []
    return [Setting("numba.set_num_threads", numba.get_num_threads, numba.set_num_threads)]


class Settings:
    """The value of every setting before a kernel's file was imported."""

    def __init__(self) -> None:
        self._known = _known()
        self._wanted = [s.now() for s in self._known]

    def restore(self, when: str = "") -> list[Change]:
        """Restore every setting and return the changes that count as findings, seen after what `when` says."""
        first = changed = self._changed()
        for _ in range(3):  # restoring a general setting may change a special one
            for setting, wanted, _now in reversed(changed):
                with contextlib.suppress(Exception), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    setting.write(wanted)
            if not changed or not (changed := self._changed()):
                break
        return [
            Change(setting.name, str(wanted), str(now), setting.instead, when)
            for setting, wanted, now in first
            if setting.instead and now is not None
        ]

    def _changed(self) -> list[tuple[Setting, Any, Any]]:
        """Return each setting that differs, with its old and its new value."""
        return [
            (setting, wanted, now)
            for setting, wanted in zip(self._known, self._wanted, strict=True)
            if (now := setting.now()) != wanted
        ]
