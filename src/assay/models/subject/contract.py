"""What the functions of a user's own model must fulfil: they can be called as documented. Errors name the function's own
line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from assay import provenance
from assay.errors import SourceError

EXAMPLE = "`def example(batch):`, which returns a tensor, or a tuple or dict of tensors, of `batch` elements"


def verify_build(function: Callable[..., Any], module: str, knobs: Iterable[str]) -> None:
    """Raise a SourceError if the function cannot be called with these knobs by name, and with nothing else."""
    names = list(knobs)
    expected = f"`def {_name(function)}({', '.join(names)}):`, which returns a torch.nn.Module"
    fix = f"write it as {expected}; it may have other parameters if KNOBS or a default gives their values"
    _verify_call(function, module, fix, (), names)


def verify_example(function: Any, module: str) -> None:
    """Raise a SourceError if the function cannot be called with a batch size."""
    fix = f"write it as {EXAMPLE}"
    if not callable(function):
        raise SourceError(f"example is a {type(function).__name__}, not a function", where=module, fix=fix)
    _verify_call(function, module, fix, ("batch",), ())


def _verify_call(
    function: Callable[..., Any], module: str, fix: str, given: Iterable[str], named: Iterable[str]
) -> None:
    """`module`: the file as the user wrote it, or a dotted name."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function written in C may have none
        return
    try:
        signature.bind(*given, **dict.fromkeys(named))
    except TypeError as problem:
        arguments = " and ".join((*given, *named))
        how = f"with {arguments} alone" if arguments else "without arguments"
        what = f"{_name(function)}{signature} cannot be called {how}: {problem}"
        raise SourceError(what, where=line_of(function, module), fix=fix) from None


def _name(function: Callable[..., Any]) -> str:
    name: str = getattr(function, "__name__", type(function).__name__)
    return name


def line_of(function: Any, module: str) -> str:
    """Return the file and line where a function is defined, or `module` if it has no line of its own."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not Path(code.co_filename).is_file():
        return module
    own = module.endswith(".py") and Path(module).resolve() == Path(code.co_filename)
    return f"{module if own else provenance.shown(Path(code.co_filename))}:{code.co_firstlineno}"
