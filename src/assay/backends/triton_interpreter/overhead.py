"""The interpreter's overhead. It patches the whole of triton.language at each launch and again at each call of a device
function, computes every integer sum twice for an overflow check whose result is dropped, and builds a table of types
for each lookup and the same few shapes for each tensor. A worker only interprets, so it is patched once and for all."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from assay.backends.triton_interpreter import work


class _Kept:
    def restore(self) -> None:
        """Do nothing: the process stays an interpreter until it ends."""


def patch() -> None:
    module: Any = interpreter
    patch_language, patched = interpreter._patch_lang, set[int]()

    def patch_once(function: Any) -> _Kept:
        languages = [v for v in function.__globals__.values() if v is tl or v is tl.core]
        if any(id(v) not in patched for v in languages) or not languages:
            patch_language(function)
            patched.update(map(id, languages))
        return _Kept()

    module._patch_lang = patch_once
    module._get_np_dtype = _storage_of(interpreter._get_np_dtype)
    tensor: Any = tl.core.tensor
    tensor.__init__ = _remembering_shapes
    block_type: Any = tl.core.block_type
    block_type.__init__ = _remembered(block_type.__init__)
    builder: Any = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)


def _storage_of(original: Any) -> Any:
    known: dict[str, Any] = {}

    def storage(dtype: Any) -> Any:
        scalar = dtype.element_ty if isinstance(dtype, tl.block_type) else dtype
        if isinstance(scalar, tl.pointer_type):
            return np.dtype(np.uint64)
        name = scalar.name
        if name not in known:
            known[name] = original(scalar)
        return known[name]

    return storage


def _remembering_shapes(self: Any, handle: Any, type: Any) -> None:
    """Replace `tensor.__init__`, which creates the shape's constants anew each time; here they are kept by type."""
    self.handle, self.type, self.dtype = handle, type, type.scalar
    self.numel, self.shape = type.__dict__.get("constants") or _constants(())
    work.add(self.numel.value)


@functools.cache
def _constants(sizes: tuple[int, ...]) -> tuple[Any, Any]:
    return tl.core.constexpr(math.prod(sizes)), tl.core.tuple([tl.core.constexpr(n) for n in sizes])


def _remembered(original: Any) -> Any:
    known: dict[tuple[Any, ...], dict[str, Any]] = {}

    def init(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = tuple([n.value if isinstance(n, tl.core.constexpr) else n for n in shape])
        key = (element_ty.name, sizes)
        if key not in known:
            original(self, element_ty, shape)
            known[key] = {**self.__dict__, "constants": _constants(sizes)}
        self.__dict__.update(known[key])
        self.element_ty = element_ty

    return init
