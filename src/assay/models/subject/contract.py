"""What the functions of a user's own model must fulfil: they can be called as documented, and `example(batch)` returns
inputs of as many elements as it was asked for. Errors name the function's own line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
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


def verify_batch(function: Callable[[int], Any], module: str, batch: int, made: Any) -> None:
    """Raise a SourceError if the inputs that the function made for `batch` do not depend on it: rates are computed from
    the batch size. The batch need not be the first dimension (packed inputs, a list of images), so inputs without it
    are only refused if those of another batch size have the same shapes."""
    shapes = _shapes(made)
    if any(isinstance(shape, tuple) and shape[:1] == (batch,) for shape in shapes):
        return
    other = batch // 2 or batch + 1
    try:
        others = _shapes(function(other))
    except Exception:  # it depends on the batch size, then
        return
    if shapes == others:
        name, seen = _name(function), " and ".join(str(shape) for shape in shapes if isinstance(shape, tuple))
        raise SourceError(
            f"{name}({batch}) returns the shapes of {name}({other}), {seen or 'no tensor'}: it ignores the batch size",
            where=line_of(function, module),
            fix="make the inputs of as many elements as it is asked for: `torch.randn(batch, …)`",
        )


def _shapes(made: Any) -> list[Any]:
    """Return the shape of every tensor, numbers and texts as they are, and the types of other values."""
    from torch.utils import _pytree as pytree

    return [_shape(leaf) for leaf in pytree.tree_leaves(dict(made) if isinstance(made, Mapping) else made)]


def _shape(leaf: Any) -> Any:
    if isinstance(leaf, int | float | str | None):
        return leaf
    if getattr(leaf, "is_nested", False):
        return tuple(tuple(part.shape) for part in leaf.unbind())
    shape = getattr(leaf, "shape", None)
    return type(leaf) if shape is None else tuple(shape)
