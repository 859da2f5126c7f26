"""Undefined values. The interpreter gives 0 for the lanes that a mask switches off in a `tl.load` without `other`, and
beyond a block pointer's boundary without `padding_option`; Triton's documentation calls both undefined. Here such lanes
have the values of `unwritten`: a reduction that includes them is visibly wrong, one that masks them out is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from triton.runtime import interpreter

from assay.backends.triton_interpreter import bounds, formats
from assay.backends.unwritten import unwritten

Handle = interpreter.TensorHandle


def patch() -> None:
    builder: Any = interpreter.InterpreterBuilder
    builder.create_masked_load = _masked_load
    builder.create_load = _load
    builder.create_tensor_pointer_load = _block_load
    original = builder.create_descriptor_load

    def descriptor_load(self: Any, desc: Any, *rest: Any, **named: Any) -> Any:
        if "NAN" not in str(desc.padding):
            return original(self, desc, *rest, **named)
        pointers, inside = desc.materialize_pointers(rest[0])
        return _loaded(pointers, inside, nan_of(pointers.get_element_ty()))

    builder.create_descriptor_load = descriptor_load


def undefined(dtype: Any, shape: Any) -> Any:
    """Return a block of undefined values, as the interpreter stores it."""
    if formats.is_packed(dtype):
        return formats.packed(unwritten(np.float32, shape), dtype)
    return unwritten(interpreter._get_np_dtype(dtype), shape)


def nan_of(dtype: Any) -> Any:
    if formats.is_packed(dtype):
        return formats.packed(np.array([np.nan], np.float32), dtype)[0]
    return interpreter._get_np_dtype(dtype).type(np.nan)


def _loaded(pointers: Any, inside: Any, other: Any) -> Any:
    dtype = pointers.get_element_ty()
    storage = interpreter._get_np_dtype(dtype)
    bounds.look(pointers.data, inside)
    filled = np.full(pointers.data.shape, other, storage) if np.ndim(other) == 0 else other
    return Handle(interpreter._interpreter.load(pointers.data, inside, filled, storage), dtype)


def _load(self: Any, pointers: Any, *options: Any) -> Any:
    everywhere = np.ones(pointers.data.shape, np.bool_)
    return _loaded(pointers, everywhere, 0)


def _masked_load(
    self: Any, pointers: Any, mask: Any, other: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any
) -> Any:
    if other is not None:
        return _loaded(pointers, mask.data, other.data)
    if mask.data.all():
        return _loaded(pointers, mask.data, 0)
    return _loaded(pointers, mask.data, undefined(pointers.get_element_ty(), pointers.data.shape))


def _block_load(self: Any, pointer: Any, boundary_check: Any, padding: Any, *options: Any) -> Any:
    pointers, inside = pointer.materialize_pointers(boundary_check)
    if padding is None:
        return _loaded(pointers, inside, undefined(pointers.get_element_ty(), pointers.data.shape))
    return _loaded(pointers, inside, nan_of(pointers.get_element_ty()) if "NAN" in str(padding) else 0)
