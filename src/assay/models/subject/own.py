"""A user's own model: a function that is called without arguments and returns an `nn.Module`, named as
`module:function` or `path/file.py:function`. Its inputs come from `example(batch)` in the same module, or from a
function that it returns as a second value."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import provenance
from assay.errors import AssayError, SourceError, UsageError
from assay.models.subject import contract
from assay.models.subject.knobs import Knob
from assay.settings import did_you_mean
from assay.worker.load import module as imported

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Name:
    module: str
    """A dotted name, or a path that ends in .py."""
    function: str

    @property
    def file(self) -> Path | None:
        return Path(self.module).resolve() if self.module.endswith(".py") else None

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


def named(text: str) -> Name:
    module, _, function = text.rpartition(":")
    if not module or not function.isidentifier():
        raise UsageError(f"'{text}' names no function", fix="module:function or path/file.py:function")
    name = Name(module, function)
    if name.file and not name.file.is_file():
        raise UsageError(f"no file {module}", fix="path/file.py:function, from the folder you are in")
    return name


def knobs(text: str) -> dict[str, Knob]:
    """Load a user's file and return the knobs it declares: `KNOBS = {"depth": ["1", "2", "4"]}`, with the first value
    as the default. The function takes them by name, as strings."""
    declared = getattr(_module(named(text)), "KNOBS", {})
    try:
        return {str(name): Knob(tuple(map(str, values)), str(next(iter(values)))) for name, values in declared.items()}
    except (AttributeError, TypeError, StopIteration):
        fix = 'KNOBS = {"depth": ["1", "2", "4"]}: a list of values for each name'
        raise SourceError("KNOBS are no lists of values", where=text, fix=fix) from None


def build(text: str, options: Mapping[str, str]) -> torch.nn.Module:
    """Call the user's function. An exception in it becomes a SourceError with its line."""
    return _made(named(text), options)[0]


def example(text: str, batch: int) -> Any:
    """Return the result of the user's `example(batch)`: a tensor, or a tuple or dict of them."""
    name = named(text)
    _function(name)
    make = getattr(_module(name), "example", None)
    make = _made(name, {})[1] if make is None else make
    if make is None:
        raise UsageError(f"{name}: what goes in?", fix=f"beside it, write {contract.EXAMPLE}")
    contract.verify_example(make, name.module)
    with named_in_errors(name, f"making the inputs of a batch of {batch}"):
        made = make(batch)
        contract.verify_batch(make, name.module, batch, made)
    return made


def _made(name: Name, options: Mapping[str, str]) -> tuple[torch.nn.Module, Callable[[int], Any] | None]:
    import torch

    function = _function(name)
    contract.verify_build(function, name.module, options)
    with named_in_errors(name, "building the model"):
        made = function(**options)
    model, make = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, torch.nn.Module):
        raise SourceError(
            f"{name.function} returned {_kind(model)}, not a torch.nn.Module",
            where=name.module,
            fix="return the module, or (module, function from a batch size to its inputs)",
        )
    return model, make


def _function(name: Name) -> Callable[..., Any]:
    module = _module(name)
    function: Callable[..., Any] | None = getattr(module, name.function, None)
    if not callable(function):
        hint = did_you_mean(name.function, (n for n, v in vars(module).items() if callable(v)))
        raise UsageError(
            f"{name.module} has no function {name.function}", fix=f"{hint}It must stand at the top of the file"
        )
    return function


def _module(name: Name) -> Any:
    with named_in_errors(name, "importing it"):
        if name.file:
            return imported(name.file)
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(name.module)
        except ModuleNotFoundError as problem:
            if problem.name and f"{name.module}.".startswith(f"{problem.name}."):
                fix = "run from its folder, or name its file"
                raise UsageError(f"no module called '{name.module}'", fix=fix) from None
            raise


@contextmanager
def named_in_errors(name: Name, doing: str) -> Iterator[None]:
    """Turn an exception in the user's code into a SourceError with its line. `doing`: the activity, for the message."""
    try:
        yield
    except AssayError:
        raise
    except Exception as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        own = next((f for f in reversed(frames) if name.file and Path(f.filename) == name.file), None)
        what = f"{type(problem).__name__}: {problem}".splitlines()[0]
        if isinstance(problem, SyntaxError):
            where = f"{provenance.shown(Path(problem.filename or name.module))}:{problem.lineno}"
        elif own:
            where = f"{name.module}:{own.lineno}"
        else:
            where = name.module
            what += f" (at {_elsewhere(frames[-1])})" if frames[-1].filename != __file__ else ""
        fix = f"this was while {doing}: fix it in {name.module}"
        raise SourceError(what, where=where, fix=fix) from None


def _elsewhere(frame: traceback.FrameSummary) -> str:
    """Return the file and line of a frame in another package, relative to site-packages."""
    return f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno}"


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
