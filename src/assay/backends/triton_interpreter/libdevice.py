"""libdevice. The interpreter has none: `libdevice.tanh(x)` is None there. Here its elementwise functions are computed
in float64 and rounded once, which is closer than the 1 or 2 ulp they are specified to. The fast ones follow their
instructions: `fast_expf` is `ex2.approx.ftz` of a float32 product, `fast_fdividef` is `div.approx.ftz`, whose divisor
may not exceed 2¹²⁶, and `fast_sinf`, `fast_cosf` and `fast_logf` have absolute errors (2⁻²¹ within a period, 2⁻²²)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from assay.backends import approximations as fast
from assay.backends.triton_interpreter import casts

_LOG2_10 = np.float32(3.3219280948873623)


def patch() -> None:
    import triton.language.extra.libdevice as stubs
    from triton.language.extra.cuda import libdevice as real

    builder: Any = interpreter.InterpreterBuilder
    builder.create_extern_elementwise = _call
    for name, function in list(vars(real).items()):
        if tl.core.is_builtin(function):
            bound = _with_semantic(function)
            setattr(real, name, bound)
            if hasattr(stubs, name):
                setattr(stubs, name, bound)


def _with_semantic(function: Callable[..., Any]) -> Callable[..., Any]:
    def bound(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{**kwargs, "_semantic": interpreter.interpreter_semantic})

    return bound


def _call(self: Any, library: str, path: str, symbol: str, arguments: Any, result: Any, pure: bool) -> Any:
    dtype = result.scalar
    name = symbol.removeprefix("__nv_")
    data = [a.data for a in arguments]
    storage = interpreter._get_np_dtype(dtype)
    single = data[0].dtype == np.float32
    if single and name in _FAST:
        values = _FAST[name](*data)
    else:
        function = _FUNCTIONS.get(name) or _FUNCTIONS.get(name.removesuffix("f"))
        if function is None:
            raise NotImplementedError(f"libdevice's {symbol} is not interpreted: run this kernel on a GPU")
        wide = [d.astype(np.float64) if d.dtype == np.float32 else d for d in data]
        values = np.asarray(function(*wide))
    if np.issubdtype(storage, np.integer) and np.issubdtype(values.dtype, np.floating):
        values = casts.integers(values, dtype)
    return interpreter.TensorHandle(values.astype(storage), dtype)


def _torch(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        import torch

        torch_function = getattr(torch, name, None) or getattr(torch.special, name)
        return torch_function(*(torch.from_numpy(np.array(a, np.float64, order="C")) for a in args)).numpy()

    return function


def _half_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


_FAST: dict[str, Callable[..., Any]] = {
    "fast_expf": fast.fast_exp,
    "fast_exp10f": lambda x: fast.exp2_approx(x * _LOG2_10),
    "fast_fdividef": fast.divide_approx,
    "fast_powf": fast.fast_pow,
    "fast_sinf": fast.fast_sin,
    "fast_cosf": fast.fast_cos,
    "fast_tanf": lambda x: fast.divide_approx(fast.fast_sin(x), fast.fast_cos(x)),
    "fast_logf": fast.fast_log,
    "fast_log2f": fast.fast_log2,
    "fast_log10f": fast.fast_log10,
    "rsqrtf": fast.rsqrt_approx,
    "sqrtf": fast.sqrt_approx,
}

_NUMPY = (
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "cbrt",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "hypot",
    "copysign",
    "nextafter",
    "abs",
    "fabs",
    "fmod",
    "ldexp",
    "signbit",
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _NUMPY},
    **{name: _torch(name) for name in ("erf", "erfc", "erfinv", "lgamma", "erfcx")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": np.arctan2,
    "pow": np.power,
    "powi": lambda x, n: np.power(x, n.astype(np.float64)),
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "norm3d": lambda *x: np.sqrt(sum(v * v for v in x)),
    "norm4d": lambda *x: np.sqrt(sum(v * v for v in x)),
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "normcdf": _torch("ndtr"),
    "normcdfinv": _torch("ndtri"),
    "erfcinv": lambda x: _torch("erfinv")(1 - x),
    "tgamma": lambda x: np.exp(_torch("lgamma")(x)) * np.where((x < 0) & (np.floor(x) % 2 != 0), -1, 1),
    "cyl_bessel_i0": _torch("i0"),
    "cyl_bessel_i1": _torch("i1"),
    "j0": _torch("bessel_j0"),
    "j1": _torch("bessel_j1"),
    "y0": _torch("bessel_y0"),
    "y1": _torch("bessel_y1"),
    "fma": lambda x, y, z: x * y + z,
    "fma_rn": lambda x, y, z: x * y + z,
    "fmaf_rn": lambda x, y, z: x * y + z,
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0)),
    "fmin": np.fmin,
    "fmax": np.fmax,
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "round": _half_away,
    "nearbyint": np.rint,
    "llrint": np.rint,
    "llround": _half_away,
    "saturate": lambda x: np.fmin(np.fmax(x, 0.0), 1.0),
    "scalbn": lambda x, n: np.ldexp(x, n),
    "logb": lambda x: np.frexp(x)[1] - 1.0,
    "ilogb": lambda x: np.frexp(x)[1] - 1,
    "isnan": np.isnan,
    "isnand": np.isnan,
    "isinf": np.isinf,
    "isinfd": np.isinf,
    "finite": np.isfinite,
    "isfinited": np.isfinite,
    "signbitd": np.signbit,
    "llabs": np.abs,
    "float_as_int": lambda x: x.astype(np.float32).view(np.int32),
    "float_as_uint": lambda x: x.astype(np.float32).view(np.uint32),
    "int_as_float": lambda x: x.view(np.float32),
    "uint_as_float": lambda x: x.view(np.float32),
    "longlong_as_double": lambda x: x.view(np.float64),
    "double_as_longlong": lambda x: x.view(np.int64),
    "popc": np.bitwise_count,
    "popcll": np.bitwise_count,
    "clz": lambda x: _leading_zeros(x, 32),
    "clzll": lambda x: _leading_zeros(x, 64),
    "ffs": lambda x: _first_set(x),
    "ffsll": lambda x: _first_set(x),
    "mulhi": lambda x, y: (x.astype(np.int64) * y.astype(np.int64)) >> 32,
    "umulhi": lambda x, y: (x.astype(np.uint64) * y.astype(np.uint64)) >> np.uint64(32),
    "fadd_rn": np.add,
    "fsub_rn": np.subtract,
    "fmul_rn": np.multiply,
    "fdiv_rn": np.divide,
    "dadd_rn": np.add,
    "dsub_rn": np.subtract,
    "dmul_rn": np.multiply,
    "ddiv_rn": np.divide,
    "fsqrt_rn": np.sqrt,
    "dsqrt_rn": np.sqrt,
    "frcp_rn": lambda x: 1 / x,
    "drcp_rn": lambda x: 1 / x,
    "frsqrt_rn": lambda x: 1 / np.sqrt(x),
    **{
        f"{source}2{target}_{mode}": function
        for source in ("float", "double")
        for target in ("int", "uint", "ll", "ull")
        for mode, function in (("rn", np.rint), ("rz", np.trunc), ("rd", np.floor), ("ru", np.ceil))
    },
    **{
        f"{source}2{target}_rn": lambda x: x
        for source in ("int", "uint", "ll", "ull")
        for target in ("float", "double")
    },
    "double2float_rn": lambda x: x,
}


def _leading_zeros(x: Any, width: int) -> Any:
    unsigned = x.view(f"uint{width}")
    return width - np.array([int(v).bit_length() for v in unsigned.reshape(-1)], np.int32).reshape(x.shape)


def _first_set(x: Any) -> Any:
    lowest = x & -x
    return np.where(x == 0, 0, np.bitwise_count(lowest.view(f"uint{x.dtype.itemsize * 8}") - 1) + 1)
