"""`load` and `store` for @njit kernels: fp16 and bf16 live in integer arrays, arithmetic is in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from assay.backends import halves

_widen_bf16, _widen_fp16 = register_jitable(halves.float_of_bf16), register_jitable(halves.float_of_fp16)
_round_bf16, _round_fp16 = register_jitable(halves.bf16_of_float), register_jitable(halves.fp16_of_float)


def load(array: Any, index: Any) -> Any:
    """Return array[index] as float32, inside an @njit function."""
    raise TypeError("load() works inside @njit functions only: put the loop into one; see docs/languages.md")


def store(array: Any, index: Any, value: Any) -> Any:
    """Store `value`, rounded once to the array's format, in array[index], inside an @njit function."""
    raise TypeError("store() works inside @njit functions only: put the loop into one; see docs/languages.md")


# No annotations: Numba compares an overload's signature with its implementation's, annotations included.
@overload(load)
def _load(array, index):  # type: ignore[no-untyped-def]
    if array.dtype == types.uint16:
        return lambda array, index: _widen_bf16(array[index])
    if array.dtype == types.int16:
        return lambda array, index: _widen_fp16(array[index])
    return lambda array, index: array[index]


@overload(store)
def _store(array, index, value):  # type: ignore[no-untyped-def]
    def bf16(array, index, value):  # type: ignore[no-untyped-def]
        array[index] = _round_bf16(value)

    def fp16(array, index, value):  # type: ignore[no-untyped-def]
        array[index] = np.int16(_round_fp16(value))

    def plain(array, index, value):  # type: ignore[no-untyped-def]
        array[index] = value

    return {types.uint16: bf16, types.int16: fp16}.get(array.dtype, plain)
