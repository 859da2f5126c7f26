"""The interpreter's own cost. It patches the whole of triton.language at each launch and again at each call of a device
function, computes every integer sum twice for an overflow check whose result is dropped, and builds a table of types
for each lookup. A worker interprets and does nothing else, so the patches are made once and stay."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter


class _Kept:
    def restore(self) -> None:
        """Nothing: the process ends as an interpreter."""


def mend() -> None:
    module: Any = interpreter
    patch, patched = interpreter._patch_lang, set[int]()

    def patch_once(function: Any) -> _Kept:
        languages = [v for v in function.__globals__.values() if v is tl or v is tl.core]
        if any(id(v) not in patched for v in languages) or not languages:
            patch(function)
            patched.update(map(id, languages))
        return _Kept()

    module._patch_lang = patch_once
    module._get_np_dtype = _storage_of(interpreter._get_np_dtype)
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
