"""Modules that take seconds to import, loaded when something in them is first used.

`from assay.lazy import torch` at the top of a file costs nothing, so that `assay --help` and a process that only
plans stay light; `torch.zeros(3)` imports PyTorch, once."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any


class _Lazy(ModuleType):
    def __getattr__(self, name: str) -> Any:
        """Read the attribute from the module, importing it if necessary, and keep it for the next access."""
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import altair as altair
    import numpy as np
    import torch as torch
else:
    altair, np, torch = map(_Lazy, ("altair", "numpy", "torch"))

__all__ = ["altair", "np", "torch"]
