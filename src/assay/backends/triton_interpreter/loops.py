"""The variable of a loop. On a GPU, `for r in range(start, n)` gives an int32 (an int64 if a bound is one), with `.to`
and arithmetic that wraps; the interpreter gives a Python integer. `tl.static_range` gives a constant in both."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.language import core
from triton.runtime import interpreter

_NAME = "interpreter_range"
_LARGEST = 1 << 31


def patch() -> None:
    module: Any = interpreter
    setattr(module, _NAME, _range)
    transformer: Any = interpreter.ASTTransformer
    transformer.visit_For = _for


def _for(self: Any, node: Any) -> Any:
    self.generic_visit(node)
    call = node.iter
    if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", "")) == "range":
        call.args.insert(0, call.func)
        call.func = ast.copy_location(ast.Name(id=_NAME, ctx=ast.Load()), call)
    return node


def _range(make: Callable[..., range], *bounds: Any, **named: Any) -> Iterator[Any]:
    """Yield the values of a range as Triton types them."""
    values = make(*bounds, **named)
    tensors = [b for b in (*bounds, *named.values()) if isinstance(b, core.tensor)]
    wide = any(t.dtype.primitive_bitwidth > 32 for t in tensors)
    wide = wide or (len(values) > 0 and max(abs(values[0]), abs(values[-1])) >= _LARGEST)
    storage, dtype = (np.int64, tl.int64) if wide else (np.int32, tl.int32)
    for value in values:
        yield tl.tensor(interpreter.TensorHandle(np.array([value], storage), dtype), dtype)
