"""`widen` and `rounded` for Numba CUDA kernels, in the simulator and on the GPU: bf16 lives in uint16 arrays."""

from __future__ import annotations

import os
from typing import Any

if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    import numpy as np

    from assay.backends import halves

    def widen(value: Any) -> Any:
        """Return an element as float32: `widen(x[i])`."""
        return halves.float_of_bf16(value) if isinstance(value, np.uint16) else np.float32(value)

    def rounded(array: Any, value: Any) -> Any:
        """Return `value` rounded once to the array's format: `y[i] = rounded(y, v)`."""
        return halves.bf16_of_float(value) if array.dtype == np.uint16 else array.dtype.type(value)

else:
    from llvmlite import ir
    from numba.cuda import types as _types
    from numba.cuda.extending import intrinsic

    types: Any = _types

    _I16, _I32, _F32 = ir.IntType(16), ir.IntType(32), ir.FloatType()

    @intrinsic
    def widen(typing_context: Any, value: Any) -> Any:
        """Return an element as float32: `widen(x[i])`."""

        def bf16(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(builder.shl(builder.zext(args[0], _I32), _I32(16)), _F32)

        def cast(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.cast(builder, args[0], signature.args[0], types.float32)

        return types.float32(value), (bf16 if value == types.uint16 else cast)

    @intrinsic
    def rounded(typing_context: Any, array: Any, value: Any) -> Any:
        """Return `value` rounded once to the array's format: `y[i] = rounded(y, v)`."""

        def bf16(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number = context.cast(builder, args[1], signature.args[1], types.float32)
            bits = builder.bitcast(number, _I32)
            lsb = builder.and_(builder.lshr(bits, _I32(16)), _I32(1))
            nearest = builder.lshr(builder.add(bits, builder.add(lsb, _I32(0x7FFF))), _I32(16))
            is_nan = builder.fcmp_unordered("uno", number, number)
            return builder.trunc(builder.select(is_nan, _I32(0x7FC0), nearest), _I16)

        def cast(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.cast(builder, args[1], signature.args[1], signature.args[0].dtype)

        return array.dtype(array, value), (bf16 if array.dtype == types.uint16 else cast)
