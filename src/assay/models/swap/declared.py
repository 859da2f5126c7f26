"""The declarations of the library (`library/<op>/swap.py`) as tables: what computes which op, by PyTorch's objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

from torch import nn

from assay.catalog import library
from assay.swappable import Bound, Module, Swappable

OPS = tuple(dict.fromkeys(op for declared in library.swappable() for op in declared.ops))
"""Those that modules or functions compute."""
CALLED = tuple(dict.fromkeys(op for declared in library.swappable() if declared.functions for op in declared.ops))
"""Those that functions compute."""
FUSIONS = {"+".join(pair): op for declared in library.swappable() for op, pair in declared.fusions.items()}
"""Neighbours → the op that computes both."""
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

NAMED: Mapping[str, tuple[str, ...]] = {
    name.rpartition(".")[2]: declared.ops for declared in library.swappable() for name in declared.functions
}
"""What a function is called, wherever it is (`layer_norm`) → the ops it computes."""
