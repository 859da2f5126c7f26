"""A model of the user's: `module:function` or `path/file.py:function`, called without arguments.

It returns an `nn.Module`; its inputs come from `example(batch)` beside it, or from a second value it returns."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError, SourceError, UsageError
from assay.worker.load import module as imported

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch


@dataclass(frozen=True)
class Name:
    module: str
    """Dotted, or a path that ends in .py."""
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


def build(text: str) -> torch.nn.Module:
    """Call the user's function. Whatever goes wrong in it is a SourceError with its line, never a traceback."""
    name = named(text)
    return _made(name, _function(name))[0]


def example(text: str, batch: int) -> Any:
    """What the user's own `example(batch)` gives: a tensor, or a tuple or dict of them."""
    name = named(text)
    function = _function(name)
    make = getattr(_module(name), "example", None) or _made(name, function)[1]
    if make is None:
        raise UsageError(
            f"{name}: what goes in?",
            fix="beside it, write `def example(batch): …` that returns a tensor, a tuple or a dict of them",
        )
    with told(name):
        return make(batch)


def _made(name: Name, function: Callable[[], Any]) -> tuple[torch.nn.Module, Callable[[int], Any] | None]:
    import torch

    with told(name):
        made = function()
    model, make = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, torch.nn.Module):
        raise SourceError(
            f"{name.function} returned {_kind(model)}, not a torch.nn.Module",
            where=name.module,
            fix="return the module, or (module, function from a batch size to its inputs)",
        )
    return model, make


def _function(name: Name) -> Callable[[], Any]:
    found = getattr(_module(name), name.function, None)
    if not callable(found):
        raise UsageError(f"{name.module} has no function {name.function}", fix="it must stand at the top of the file")
    function: Callable[[], Any] = found
    return function


def _module(name: Name) -> Any:
    with told(name):
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
def told(name: Name) -> Iterator[None]:
    """What goes wrong in the user's code is said as an error of that code, with its line."""
    try:
        yield
    except AssayError:
        raise
    except Exception as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        theirs = [f for f in frames if name.file and Path(f.filename) == name.file] or frames[-1:]
        line = getattr(problem, "lineno", None) if isinstance(problem, SyntaxError) else theirs[-1].lineno
        said = f"{type(problem).__name__}: {problem}".splitlines()[0]
        where = f"{name.module}:{line}" if name.file else f"{theirs[-1].filename}:{line}"
        raise SourceError(
            said, where=where, fix=f"mend {name}, which is called without arguments, or the module it returns"
        ) from None


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
