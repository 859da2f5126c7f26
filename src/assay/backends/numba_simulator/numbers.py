"""Types of numbers. Numba types every literal, global and argument that is a Python float as float64, so that `x[i] *
0.5` of a float32 is a float64; in numpy, which the simulator computes with, it is a float32. Numba computes with signed
integers of up to 32 bits, and with uint8, in 64 bits, where numpy wraps. `math.exp` of a float32 is a float32 (`expf`),
where Python's is a float64. Where Python raises an exception, as in `math.exp(1000)` or `math.sqrt(-1)`, a GPU returns
±∞ or NaN. `max` and `min` of floats return the one that is a number. With `fastmath=True` the functions of `math` are
the approximate ones. (bf16 arrives as uint16, which is therefore left as it is.)"""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.cuda.simulator import kernel as simulator
from numba.cuda.simulator.cudadrv import devicearray

from assay.backends import approximations as fast

_fastmath = False

_FUNCTIONS = {
    **{
        f: getattr(np, f)
        for f in (
            "exp",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sqrt",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "floor",
            "ceil",
            "hypot",
        )
    },
    **{f"a{f}": getattr(np, f"arc{f}") for f in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": np.arctan2,
    "pow": np.power,
    "fmod": np.fmod,
    "exp2": np.exp2,
    "cbrt": np.cbrt,
    "fabs": np.abs,
    "erf": None,
    "erfc": None,
    "gamma": None,
    "lgamma": None,
    "copysign": np.copysign,
    "trunc": np.trunc,
}
"""By name: the function that gives the result where Python's own raises. None: the result is NaN."""

_FAST = {
    "exp": fast.fast_exp,
    "sin": fast.fast_sin,
    "cos": fast.fast_cos,
    "log": fast.fast_log,
    "log2": fast.fast_log2,
    "log10": fast.fast_log10,
    "pow": fast.fast_pow,
    "sqrt": fast.sqrt_approx,
    "tan": lambda x: fast.divide_approx(fast.fast_sin(x), fast.fast_cos(x)),
}


def patch() -> None:
    warnings.simplefilter("ignore", RuntimeWarning)  # GPUs do not warn (np.seterr would not reach the threads)
    for name, exact in _FUNCTIONS.items():
        if original := getattr(math, name, None):
            setattr(math, name, _as_on_a_gpu(name, original, exact))
    kernel: Any = simulator.FakeCUDAKernel
    begin, call = kernel.__init__, kernel.__call__

    def init(self: Any, fn: Any, device: Any, *rest: Any, **options: Any) -> None:
        begin(self, _with_float64_literals(fn), device, *rest, **options)
        fn.__globals__.setdefault("max", _extreme(max, np.fmax))
        fn.__globals__.setdefault("min", _extreme(min, np.fmin))

    def launch(self: Any, *args: Any) -> Any:
        global _fastmath
        space = self.fn.__globals__
        for name in self.fn.__code__.co_names:
            if type(space.get(name)) is float:
                space[name] = np.float64(space[name])
        if self._device:
            return call(self, *args)
        _fastmath = bool(self._fastmath)
        return call(self, *(np.float64(a) if type(a) is float else a for a in args))

    kernel.__init__, kernel.__call__ = init, launch
    array: Any = devicearray.FakeWithinKernelCUDAArray
    array.__getitem__ = _element


def _with_float64_literals(fn: Any) -> Any:
    constants = tuple(np.float64(c) if type(c) is float else c for c in fn.__code__.co_consts)
    code = fn.__code__.replace(co_consts=constants)
    again = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    again.__dict__.update(fn.__dict__)
    again.__module__, again.__doc__, again.__kwdefaults__ = fn.__module__, fn.__doc__, fn.__kwdefaults__
    return again


class Int32(np.int64):
    """An int32 that was read from an array. Functions such as `clz` see 32 bits; arithmetic has 64."""

    __slots__ = ()


_WIDENED = {np.int8: np.int64, np.uint8: np.int64, np.int16: np.int64, np.int32: Int32}


def _element(self: Any, index: Any) -> Any:
    element = self._item._ary[index]
    kind = type(element)
    if kind is np.ndarray or kind is np.void:
        return devicearray.FakeWithinKernelCUDAArray(devicearray.FakeCUDAArray(element, stream=self._item.stream))
    return _WIDENED[kind](element) if kind in _WIDENED else element


def _as_on_a_gpu(name: str, original: Callable[..., Any], exact: Any) -> Callable[..., Any]:
    approximate = _FAST.get(name)

    def function(*args: Any) -> Any:
        single = all(type(a) is np.float32 for a in args)
        if single and _fastmath and approximate:
            return np.float32(approximate(*(np.array([a]) for a in args))[0])
        try:
            result = original(*args)
        except (ValueError, OverflowError):
            if not _in_kernel(args):
                raise
            result = exact(*map(np.float64, args)) if exact else np.float64(np.nan)
        if not isinstance(result, float):
            return result
        return np.float32(result) if single else np.float64(result) if _in_kernel(args) else result

    function.__name__, function.__doc__ = name, original.__doc__
    return function


def _in_kernel(args: tuple[Any, ...]) -> bool:
    return any(isinstance(a, np.generic) for a in args) or simulator._get_kernel_context() is not None


def _extreme(builtin: Callable[..., Any], of_floats: Any) -> Callable[..., Any]:
    def extreme(*args: Any, **options: Any) -> Any:
        if (
            len(args) == 2
            and not options
            and isinstance(args[0], np.floating)
            and isinstance(args[1], (float, np.floating))
        ):
            return of_floats(*args)
        return builtin(*args, **options)

    return extreme
