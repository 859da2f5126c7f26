"""The classes and functions of PyTorch that the library's declarations (`library/<op>/swap.py`) name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

from torch import nn

from assay.catalog import library
from assay.swappable import Bound, Module, Swappable

MODULES: Mapping[type[nn.Module], tuple[Swappable, Module]] = {
    resolve_name(name): (declared, module)
    for declared in library.swappable()
    for name, module in declared.modules.items()
}
FUNCTIONS: Mapping[Any, tuple[Swappable, Callable[..., Bound]]] = {
    resolve_name(name): (declared, bind)
    for declared in library.swappable()
    for name, bind in declared.functions.items()
}
CALLERS: Mapping[type[nn.Module], Swappable] = {
    resolve_name(name): declared for declared in library.swappable() for name in declared.callers
}
