"""Atomic sums. The interpreter does not support bf16, and applies the lanes of one instruction that add to the same
place always in the same order; on a GPU that order is undefined, so here it differs each time. A global `atom.add.f32`
flushes subnormal operands and results to zero (PTX ISA, `atom`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from assay.backends.approximations import flushed
from assay.backends.triton_interpreter import formats

Handle = interpreter.TensorHandle


def patch() -> None:
    builder: Any = interpreter.InterpreterBuilder
    original = builder.create_atomic_rmw
    order = np.random.default_rng(0)

    def create(self: Any, kind: Any, pointer: Any, value: Any, mask: Any, sem: Any, scope: Any) -> Any:
        if "FADD" not in str(kind):
            return original(self, kind, pointer, value, mask, sem, scope)
        dtype = value.dtype.scalar
        shape = np.broadcast_shapes(pointer.data.shape, value.data.shape, mask.data.shape)
        places, values, inside = (np.broadcast_to(h.data, shape).reshape(-1) for h in (pointer, value, mask))
        turn = order.permutation(places.size)
        places, values, inside = places[turn], values[turn], inside[turn]
        if dtype == tl.bfloat16:
            before = _add_bf16(places, values, inside)
        else:
            if dtype == tl.float32:
                values = flushed(values)
            handles = (Handle(places, pointer.dtype), Handle(values, value.dtype), Handle(inside, mask.dtype))
            before = original(self, kind, *handles, sem, scope).data
            if dtype == tl.float32:
                _flush(places, inside)
        result = np.empty_like(before)
        result[turn] = before
        return Handle(result.reshape(shape), dtype)

    builder.create_atomic_rmw = create


def _flush(places: Any, inside: Any) -> None:
    load, store = interpreter._interpreter.load, interpreter._interpreter.store
    sums = load(places, inside, np.zeros(places.size, np.float32), np.dtype(np.float32))
    normal = flushed(sums)
    if normal is not sums:
        store(places, normal, inside)


def _add_bf16(places: Any, values: Any, inside: Any) -> Any:
    load, store = interpreter._interpreter.load, interpreter._interpreter.store
    before = np.zeros(places.size, np.uint16)
    for i in np.flatnonzero(inside):
        at = slice(i, i + 1)
        before[at] = load(places[at], inside[at], before[at], np.dtype(np.uint16))
        terms = (formats.unpacked(part[at], tl.bfloat16) for part in (before, values))
        store(places[at], formats.packed(sum(terms), tl.bfloat16), inside[at])
    return before
