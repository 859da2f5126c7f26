"""A Triton kernel's launches, told to torch.compile one by one: inductor then launches them itself, as it does its own,
and the way through Python and the dispatcher falls away. What `triton_op` does, for kernels that know nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from assay import library
from assay.backends import Level, here
from assay.kernel import Kernel

Rule = Callable[..., Any]


def launches_are_seen(kernel: Kernel) -> bool:
    """Those of the library's own Triton kernels: what a user's function does besides launching is unknown."""
    ours = kernel.file is not None and library.ROOT in kernel.file.parents and not kernel.needs
    return ours and kernel.address.backend == "triton" and here(kernel).level is Level.RUN


def traceable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function over the same module, but for its kernels, whose launches a tracer sees."""
    from torch.library import wrap_triton
    from triton.runtime.jit import JITFunction

    assert isinstance(function, FunctionType)
    space = dict(function.__globals__)
    for name, value in function.__globals__.items():
        if isinstance(value, JITFunction):
            space[name] = wrap_triton(value)
        elif isinstance(value, FunctionType) and value.__globals__ is function.__globals__:
            space[name] = _over(value, space)
    return _over(function, space)


def _over(function: FunctionType, space: dict[str, Any]) -> FunctionType:
    made = FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def rule(run: Callable[..., Any]) -> Rule:
    """What torch.compile does with the operator: `run`, traced. Exports keep the operator; so do sizes that are
    symbols, from which no grid can be computed here."""

    def decompose(mode: Any, operator: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from torch.export._trace import custom_triton_ops_decomposition_disabled

        symbolic = any(isinstance(s, torch.SymInt) for t in args if isinstance(t, torch.Tensor) for s in t.shape)
        if symbolic or custom_triton_ops_decomposition_disabled():
            return mode.__torch_dispatch__(operator, types, args, kwargs)
        with mode:
            return run(*args, **kwargs)

    return decompose
