"""`tl.reduce`, `tl.associative_scan` and what is built on them. The interpreter combines from left to right, or lets
numpy do so in a wider format: fp16 is summed in float32, bf16 as integers. A GPU combines halves of the block (threads
of a warp exchange values, then warps), each step in the block's own format, so a function that is not associative (or,
in a reduction, not commutative) gives another result than from left to right. Here a reduction combines the two halves
of the axis until one element is left, and a scan combines elements 1, 2, 4, … apart; this is also faster by far than a
Python call for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from assay.backends.triton_interpreter import formats
from assay.backends.triton_interpreter.arithmetic import extreme

Handle = interpreter.TensorHandle

_ARGUMENT_EXTREMES = {
    "_argmax_combine_tie_break_left": np.argmax,
    "_argmin_combine_tie_break_left": np.argmin,
}
_ELEMENTWISE_EXTREMES = {"_elementwise_max": (np.fmax, 1), "_elementwise_min": (np.fmin, -1)}


def patch() -> None:
    reduce_ops: Any = interpreter.ReduceOps
    scan_ops: Any = interpreter.ScanOps
    reduce_ops.apply_impl = _reduce
    scan_ops.apply_impl = _scan


def _named(function: Any, names: Any) -> str:
    """Return the name under which Triton's standard library has this function, if it is one of `names`; else empty."""
    name = getattr(getattr(function, "fn", None), "__name__", "")
    return name if name in names and getattr(tl.standard, name, None) is function else ""


def _reduce(self: Any, inputs: Sequence[Any]) -> Any:
    arrays = [i.handle.data.reshape(i.shape or (1,)) for i in inputs]
    dtypes = [i.dtype for i in inputs]
    rank = arrays[0].ndim
    axis = 0 if self.axis is None else self.axis % rank
    if self.axis is None:
        arrays = [a.reshape(-1) for a in arrays]
    if name := _named(self.combine_fn, _ARGUMENT_EXTREMES):
        values = formats.unpacked(arrays[0], dtypes[0])
        if not (np.issubdtype(values.dtype, np.floating) and np.isnan(values).any()):
            places = np.expand_dims(_ARGUMENT_EXTREMES[name](values, axis=axis), axis)
            arrays = [np.take_along_axis(a, places, axis) for a in arrays]
    while (n := arrays[0].shape[axis]) > 1:
        before = (slice(None),) * axis
        low, high = ([a[(*before, half)] for a in arrays] for half in (slice(0, n // 2), slice(n // 2, n)))
        arrays = _combined(self.combine_fn, low, high, dtypes)
    results = []
    for array, dtype in zip(arrays, dtypes, strict=True):
        if self.keep_dims:
            shaped = array if self.axis is not None else array.reshape((1,) * rank)
        else:
            shaped = np.squeeze(array, axis)
        results.append(self.to_tensor(shaped if shaped.ndim else shaped[()], dtype))
    return results


def _scan(self: Any, inputs: Sequence[Any]) -> Any:
    axis, dtypes = self.axis % len(inputs[0].shape), [i.dtype for i in inputs]
    arrays = [np.flip(i.handle.data, axis) if self.reverse else i.handle.data for i in inputs]
    n, apart = arrays[0].shape[axis], 1
    shape = [1] * arrays[0].ndim
    shape[axis] = n
    place = np.arange(n).reshape(shape)
    while apart < n:
        earlier = [np.roll(a, apart, axis) for a in arrays]
        together = _combined(self.combine_fn, earlier, arrays, dtypes)
        arrays = [np.where(place >= apart, t, a) for t, a in zip(together, arrays, strict=True)]
        apart *= 2
    return [self.to_tensor(np.flip(a, axis) if self.reverse else a, d) for a, d in zip(arrays, dtypes, strict=True)]


def _combined(function: Any, left: Sequence[Any], right: Sequence[Any], dtypes: Sequence[Any]) -> list[Any]:
    """Apply the kernel's combining function to whole arrays."""
    if function is tl.standard._sum_combine:
        return [_stored(np.add(*_numbers(left, right, dtypes)), dtypes[0])]
    if name := _named(function, _ELEMENTWISE_EXTREMES):
        x, y = _numbers(left, right, dtypes)
        choose, sign = _ELEMENTWISE_EXTREMES[name]
        chosen = extreme(choose, sign, x, y) if np.issubdtype(x.dtype, np.floating) else choose(x, y)
        return [_stored(chosen, dtypes[0])]
    operands = [
        tl.core.tensor(Handle(a, d), tl.block_type(d, list(a.shape)))
        for arrays in (left, right)
        for a, d in zip(arrays, dtypes, strict=True)
    ]
    results = function.rewrite()(*operands)
    results = results if isinstance(results, (tuple, tl.core.tuple)) else (results,)
    shape = left[0].shape
    return [
        np.broadcast_to(r.handle.data if isinstance(r, tl.core.tensor) else np.asarray(r), shape).astype(a.dtype)
        for r, a in zip(results, left, strict=True)
    ]


def _numbers(left: Sequence[Any], right: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
    return formats.unpacked(left[0], dtypes[0]), formats.unpacked(right[0], dtypes[0])


def _stored(values: Any, dtype: Any) -> Any:
    return formats.packed(values, dtype) if formats.is_packed(dtype) else values
