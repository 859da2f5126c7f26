"""Kernels with a declared signature, `@cuda.jit("void(float32[:], int64)")`. The simulator ignores it. On a GPU, Numba
launches the code of the only signature with any arrays, and reads their memory as declared."""

from __future__ import annotations

from typing import Any

from numba.cuda.core import sigutils
from numba.cuda.np.numpy_support import from_dtype
from numba.cuda.simulator.kernel import FakeCUDAKernel

from assay.errors import LaunchError


def patch() -> None:
    kernel: Any = FakeCUDAKernel
    call = kernel.__call__

    def checked(self: Any, *args: Any) -> Any:
        if (declared := getattr(self, "signatures", ())) and not self._device:
            _check(self.fn.__name__, declared, args)
        return call(self, *args)

    kernel.__call__ = checked


def declared(kernel: Any, argument: Any) -> Any:
    """Attach to the kernel the signatures that `cuda.jit` was given, one or a list of them, and return it."""
    every = argument if isinstance(argument, list) else [argument]
    kernel.signatures = tuple(sigutils.normalize_signature(s)[0] for s in every)
    return kernel


def _check(name: str, signatures: tuple[tuple[Any, ...], ...], args: tuple[Any, ...]) -> None:
    problems = [_misfit(signature, args) for signature in signatures]
    if all(problems):
        shown = " or ".join(f"({', '.join(map(str, s))})" for s in signatures)
        raise LaunchError(
            f"`{name}` is declared for {shown}: {problems[0]} in the launch",
            fix="declare a signature for each dtype and layout, cuda.jit([…, …]), or none: Numba then compiles for "
            "the arguments of each launch",
        )


def _misfit(signature: tuple[Any, ...], args: tuple[Any, ...]) -> str:
    """Return why the arguments do not fit; empty if they do, or may."""
    if len(signature) != len(args):
        return f"{len(args)} arguments are passed for {len(signature)} parameters"
    for number, (parameter, value) in enumerate(zip(signature, args, strict=True), 1):
        array = getattr(value, "_ary", value)
        is_array, wants_array = bool(getattr(array, "ndim", 0)), hasattr(parameter, "layout")
        if is_array != wants_array:
            kind = "an array" if is_array else f"a {type(value).__name__}"
            return f"parameter {number}, `{parameter}`, gets {kind}"
        if is_array and (shown := _passed(array)) and not _reads(parameter, array):
            return f"parameter {number}, `{parameter}`, gets {shown}"
    return ""


def _passed(array: Any) -> str:
    """Describe the array; empty if Numba has no type for its elements."""
    try:
        elements = from_dtype(array.dtype)
    except NotImplementedError:
        return ""
    return f"a {'contiguous' if array.flags.c_contiguous else 'strided'} {array.ndim}d array of {elements}"


def _reads(parameter: Any, array: Any) -> bool:
    contiguous = {"C": array.flags.c_contiguous, "F": array.flags.f_contiguous}.get(parameter.layout, True)
    return bool(contiguous and parameter.ndim == array.ndim and str(parameter.dtype) == str(from_dtype(array.dtype)))
