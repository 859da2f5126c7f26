"""Arguments of a kernel. A Python float arrives on the GPU as an fp32 value: fp16 · scale is then computed in fp32, and
0.1 is 0.100000001. The interpreter keeps a Python number, which takes the other operand's type. A bool, which the
interpreter cannot pass at all, arrives as an int1. An integer that equals 1 is compiled in as a constant (Triton's
specialisation), which has no `.to` and no `.dtype`."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

_specialise = True


def patch() -> None:
    module: Any = interpreter
    original = interpreter._implicit_cvt

    def convert(argument: Any) -> Any:
        if isinstance(argument, bool):
            return _scalar(np.array([argument]), tl.int1)
        if isinstance(argument, float):
            return _scalar(np.array([argument], np.float32), tl.float32)
        if isinstance(argument, int) and argument == 1 and _specialise:
            return 1
        return original(argument)

    run = interpreter.InterpretedFunction.run

    def run_and_specialise(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _specialise
        kept = self.kwargs.get("do_not_specialize")
        typed = [a for a in self.fn.__annotations__.values() if "constexpr" not in str(a)]
        _specialise = not (kept or typed)
        return run(self, *args, **kwargs)

    module._implicit_cvt = convert
    module.InterpretedFunction.run = run_and_specialise


def _scalar(data: Any, dtype: Any) -> Any:
    return tl.tensor(interpreter.TensorHandle(data, dtype), dtype)
