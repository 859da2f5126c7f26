"""NVIDIA's approximate float32 instructions as numpy functions. The errors are those that the PTX ISA states and an
H200 shows; results agree with that device's in most bits, not in all."""

from __future__ import annotations

from typing import Any

import numpy as np

SMALLEST_NORMAL = np.float32(2.0**-126)
_LOG2_E = np.float32(1.4426950408889634)


def flushed(x: Any) -> Any:
    """Return subnormals as zeros of their sign, as `.ftz` does with operands and results."""
    small = np.abs(x) < SMALLEST_NORMAL
    return np.where(small, np.copysign(np.float32(0), x), x) if small.any() else x


def divide_full(x: Any, y: Any) -> Any:
    """`div.full.f32` (2 ulp): a rounded reciprocal and a rounded product, over the whole range."""
    size = np.abs(y)
    if not ((size < SMALLEST_NORMAL) & (size > 0) | (size > 2.0**126)).any():
        return x * (np.float32(1) / y)
    fraction, exponent = np.frexp(y)
    product = x.astype(np.float64) * (np.float32(1) / fraction).astype(np.float64)
    usual = np.ldexp(product, -exponent).astype(np.float32)
    return np.where((size > 0) & np.isfinite(y), usual, x / y)


def divide_approx(x: Any, y: Any) -> Any:
    """`div.approx.ftz.f32`: as above, but divisors beyond 2¹²⁶ give 0."""
    x, y = flushed(x), flushed(y)
    return flushed(np.where(np.abs(y) > 2.0**126, x * np.float32(0), divide_full(x, y)))


def sqrt_approx(x: Any) -> Any:
    """`sqrt.approx.ftz.f32`, relative error 2⁻²³."""
    x = flushed(x)
    root = x * (1 / np.sqrt(x.astype(np.float64))).astype(np.float32)
    return np.where((x == 0) | (x == np.inf), x, root)


def rsqrt_approx(x: Any) -> Any:
    """`rsqrt.approx.ftz.f32`, relative error 2⁻²²·⁹."""
    return np.float32(1) / np.sqrt(flushed(x))


def exp2(x: Any) -> Any:
    """`ex2.approx.f32`, relative error 2⁻²²: a quarter of the results are the neighbour of the nearest float32."""
    exact = np.exp2(x)
    chance = (x.view(np.uint32) * np.uint32(0x9E3779B1)) >> np.uint32(29)
    usual = np.isfinite(exact) & (exact >= SMALLEST_NORMAL) & (x != np.trunc(x))
    step = np.where(usual, (chance == 0).astype(np.int32) - (chance == 1), 0)
    return (exact.view(np.int32) + step).view(np.float32)


def exp2_approx(x: Any) -> Any:
    """`ex2.approx.ftz.f32`."""
    return flushed(exp2(np.ascontiguousarray(flushed(x))))


def exp_by_exp2(x: Any) -> Any:
    """eˣ as 2 to the power of a float32 product: the relative error grows with |x|."""
    return exp2(np.ascontiguousarray(x * _LOG2_E))


def fast_exp(x: Any) -> Any:
    return exp2_approx(x * _LOG2_E)


def cut(function: Any, error: float) -> Any:
    """Return `function` with results truncated to multiples of its instruction's absolute error."""
    return lambda x: (np.trunc(function(flushed(x).astype(np.float64)) / error) * error).astype(np.float32)


fast_sin, fast_cos = cut(np.sin, 2.0**-21), cut(np.cos, 2.0**-21)
fast_log, fast_log2, fast_log10 = (cut(f, 2.0**-22) for f in (np.log, np.log2, np.log10))


def fast_pow(x: Any, y: Any) -> Any:
    return exp2_approx((y * np.log2(flushed(x).astype(np.float64)).astype(np.float32)).astype(np.float32))
