"""Exposes the individual launches of a Triton kernel to torch.compile, so that Inductor launches them like its own,
without Python and the dispatcher in between. `triton_op` does the same for kernels that are written for it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from assay import syntax
from assay.backends import Level, here
from assay.catalog import library
from assay.kernel import Kernel

Rule = Callable[..., Any]


def launches_are_seen(kernel: Kernel) -> bool:
    """Return whether the kernel's launches can be exposed. Only the library's own Triton kernels qualify: what a user's
    function does besides launching is unknown."""
    ours = kernel.file is not None and library.ROOT in kernel.file.parents and not kernel.needs
    return ours and kernel.address.backend == "triton" and here(kernel).level is Level.RUN


def traceable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of the function and its module's globals in which a tracer sees the launches of kernels."""
    from triton.runtime.jit import JITFunction

    assert isinstance(function, FunctionType)
    space = dict(function.__globals__)
    for name, value in function.__globals__.items():
        if isinstance(value, JITFunction):
            space[name] = Launched(value)
        elif isinstance(value, FunctionType) and value.__globals__ is function.__globals__:
            space[name] = _copy(value, space)
    return _copy(function, space)


def _copy(function: FunctionType, space: dict[str, Any]) -> FunctionType:
    made = FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__annotations__ = dict(function.__annotations__)
    made.__module__ = function.__module__
    return made


@dataclass(frozen=True)
class Launched:
    """A Triton kernel whose launches a tracer sees."""

    kernel: Any

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        from torch.library import wrap_triton

        def launch(*args: Any, **kwargs: Any) -> None:
            names = self.kernel.arg_names
            given = dict(zip(names, args, strict=False)) | kwargs
            floats = frozenset(name for name, value in given.items() if isinstance(value, float))
            kernel = with_constants(self.kernel, floats) if floats else self.kernel
            options = {name: int(value) for name, value in kwargs.items() if name not in names}  # warps: not symbolic
            wrap_triton(kernel)[grid](*args, **(kwargs | options))

        return launch


@functools.cache
def with_constants(kernel: Any, names: frozenset[str]) -> Any:
    """Return the kernel with these parameters as constants, also in its source, which inductor compiles. Floats must be
    constants: as arguments, inductor makes them and all that is computed with them float64, while Triton makes them
    float32."""
    from triton.runtime.jit import JITFunction

    function = _copy(kernel.fn, kernel.fn.__globals__)
    function.__qualname__ = "_".join([kernel.fn.__qualname__, "of", *sorted(names)])
    function.__annotations__ |= dict.fromkeys(names, "tl.constexpr")
    made = JITFunction(function)
    made._unsafe_update_src(constant_in_text(kernel.src, names))
    return made


def constant_in_text(text: str, names: frozenset[str]) -> str:
    definition = syntax.module(text).body[0]
    assert isinstance(definition, ast.FunctionDef)
    for parameter in definition.args.args:
        if parameter.arg in names:
            parameter.annotation = syntax.expression("tl.constexpr")
    return ast.unparse(definition)


def rule(run: Callable[..., Any]) -> Rule:
    """Return the rule by which torch.compile replaces the operator by `run`, traced. Exports keep the operator."""

    def decompose(mode: Any, operator: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from torch.export._trace import custom_triton_ops_decomposition_disabled

        if custom_triton_ops_decomposition_disabled():
            return mode.__torch_dispatch__(operator, types, args, kwargs)
        with mode:
            return run(*args, **kwargs)

    return decompose
