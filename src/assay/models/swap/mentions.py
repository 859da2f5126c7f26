"""Which functional calls a module's code can make, as far as its source file tells: the names that it mentions."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import cache
from types import BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType
from typing import Any

from torch import nn

from assay.catalog import library
from assay.models.swap.declared import CALLED
from assay.models.swap.resolved import CALLERS, FUNCTIONS
from assay.models.swap.wrapping import original_class

_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodDescriptorType)


def may_call(module: nn.Module) -> frozenset[str]:
    """Ops whose functions the module's class, its bases, or other code of their files mention; and functions that the
    module holds as attributes. Code elsewhere that it calls is not followed."""
    declared = [FUNCTIONS[v][0] for v in vars(module).values() if isinstance(v, _FUNCTIONS) and v in FUNCTIONS]
    declared += [d for kind, d in CALLERS.items() if isinstance(module, kind)]
    mentioned: set[str] = set()
    for kind in original_class(module).__mro__:
        if kind is nn.Module:
            break
        if not kind.__module__.startswith("torch.nn."):  # those that call functions are known themselves
            found = _names_in(kind.__module__)
            if found is None:
                return frozenset(CALLED)
            mentioned |= found
    declared += [d for d in library.swappable() if any(n.rpartition(".")[2] in mentioned for n in d.functions)]
    return frozenset(op for d in declared for op in d.ops)


def _names_in(module: str) -> frozenset[str] | None:
    """Every name and string in the functions of a Python module; None: it cannot be looked at."""
    home = sys.modules.get(module)
    if home is None:
        return None
    return _names(module) if module == "__main__" else _names_kept(module)  # a notebook's may grow


def _names(module: str) -> frozenset[str]:
    home = sys.modules[module]
    names: set[str] = set()
    for value in list(vars(home).values()):
        if getattr(value, "__module__", None) == module:
            for code in _codes(value):
                names |= {*code.co_names, *(c for c in code.co_consts if isinstance(c, str))}
    return frozenset(names)


_names_kept = cache(_names)


def _codes(value: Any) -> Iterator[CodeType]:
    """The code of a function, of those inside it and of those under its decorators; of a class, that of its methods."""
    members = list(vars(value).values()) if isinstance(value, type) else [value]
    functions = [getattr(m, "__func__", None) or getattr(m, "fget", None) or m for m in members]
    todo: list[Any] = [f for f in functions if isinstance(f, FunctionType)]
    seen: set[int] = set()
    while todo:
        thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, FunctionType):
            for cell in thing.__closure__ or ():
                with contextlib.suppress(ValueError):  # an empty cell
                    todo += [cell.cell_contents] if isinstance(cell.cell_contents, FunctionType) else []
            todo.append(thing.__code__)
        else:
            yield thing
            todo += [c for c in thing.co_consts if isinstance(c, CodeType)]
