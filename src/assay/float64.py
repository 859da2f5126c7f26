"""Evaluates a function of PyTorch tensors in float64, even where it would compute in float32.

PyTorch computes in float32 where a reference divides integers, makes a tensor without a dtype, or asks for it
(`x.float()`). A truth that is only as accurate as the kernels it judges would fail right ones."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from assay.lazy import torch

_RANDOM = ("rand", "normal", "bernoulli", "dropout", "poisson", "multinomial")
"""Parts of the names of functions that draw. A second call would draw other numbers, and so would another format."""


def widened(value: torch.Tensor) -> torch.Tensor:
    """Return an input as the oracle takes it: floats in float64, integers in int64, booleans unchanged."""
    if value.is_floating_point():
        return value.double()
    return value if value.dtype == torch.bool else value.long()


def exactly(function: Any, inputs: Iterable[Any], named: dict[str, Any]) -> Any:
    """Call the function with all tensors widened, in float64."""
    with mode():
        return function(*map(_wide, inputs), **{n: _wide(v) for n, v in named.items()})


def mode() -> Any:
    """Return a context in which no PyTorch function of this thread has a result in float32."""
    return _mode()()


@cache
def _mode() -> Any:
    from torch import Tensor
    from torch.overrides import TorchFunctionMode

    wider = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    methods = {Tensor.float: Tensor.double}
    chooses = (torch.where, Tensor.where)

    class Float64(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func is Tensor.view and (of := _format((*args, *kwargs.values()))):
                return widest(of_bits(args[0], of))
            draws = any(part in getattr(func, "__name__", "") for part in _RANDOM)
            if not draws:
                func = methods.get(func, func)
                args = tuple(wide_format(a) for a in args)
                kwargs = {n: wide_format(v) for n, v in kwargs.items()}
            result = func(*args, **kwargs)
            if not any(narrow(v) for v in _parts(result)):
                return result
            again = None if draws or _in_place(func) else repeated(func, args, kwargs)
            return widest(result if again is None else again)

    def wide_format(value: Any) -> Any:
        return wider.get(value, value) if isinstance(value, torch.dtype) else value

    def narrow(value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype in wider

    def widest(result: Any) -> Any:
        if isinstance(result, Tensor):
            return result.to(wider[result.dtype]) if narrow(result) else result
        kind = type(result)
        return getattr(kind, "_make", kind)([widest(v) if narrow(v) else v for v in result])

    def of_bits(value: Tensor, of: torch.dtype) -> Tensor:
        """Return the bits that the tensor would have in its own format: those of a float32 are 32."""
        return value.to(torch.float32).view(of) if value.dtype == torch.float64 and of.itemsize == 4 else value.view(of)

    def repeated(func: Any, args: Any, kwargs: Any) -> Any:
        """Return the result from the arguments in float64, or made in that format; None if the function refuses it."""
        try:
            if not any(isinstance(v, Tensor) for v in (*args, *kwargs.values())):
                return func(*args, **kwargs | {"dtype": torch.float64})
            kept, rest = (args[:1], args[1:]) if func in chooses else ((), args)
            return func(*kept, *(number(func, v) for v in rest), **{n: number(func, v) for n, v in kwargs.items()})
        except (RuntimeError, TypeError):
            return None

    def number(func: Any, value: Any) -> Any:
        if isinstance(value, Tensor):
            exact = narrow(value) or not (value.is_floating_point() or value.is_complex())
            return value.to(wider.get(value.dtype, torch.float64)) if exact else value
        return torch.tensor(value, dtype=torch.float64) if func in chooses and isinstance(value, float) else value

    return Float64


def _wide(value: Any) -> Any:
    return widened(value) if isinstance(value, torch.Tensor) else value


def _in_place(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return name.startswith("__i") if name.endswith("__") else name.endswith("_")


def _format(values: Iterable[Any]) -> torch.dtype | None:
    return next((v for v in values if isinstance(v, torch.dtype)), None)


def _parts(result: Any) -> Iterable[Any]:
    return result if isinstance(result, tuple | list) else (result,)
