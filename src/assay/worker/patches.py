"""Inside a worker: functions of torch, numpy, time and Python itself that a kernel has replaced by its own.

The parent judges raw bytes, so a replaced function hides nothing from it. It still changes what every other user of the
process computes, so it is reported."""

from __future__ import annotations

import builtins
import sys
import time
from typing import Any

import torch
import torch.nn.functional

_OWNERS: dict[str, Any] = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.cuda": torch.cuda,
    "torch.cuda.Event": torch.cuda.Event,
    "torch.cuda.Stream": torch.cuda.Stream,
    "torch.testing": torch.testing,
    "torch.backends.cudnn": torch.backends.cudnn,
    "time": time,
    "builtins": builtins,
}


class Patches:
    """The functions of each owner before a kernel's file was imported."""

    def __init__(self) -> None:
        self._owners = dict(_OWNERS)
        if (numpy := sys.modules.get("numpy")) is not None:
            self._owners["numpy"] = numpy
        self._before = {name: {k: v for k, v in vars(o).items() if callable(v)} for name, o in self._owners.items()}

    def replaced(self) -> list[str]:
        """Return the names whose functions a kernel has replaced. A replacement by an installed package does not count:
        compilers replace functions of other packages when they are imported."""
        changed = []
        for name, owner in self._owners.items():
            before, now = self._before[name], vars(owner)
            changed += [f"{name}.{k}" for k, v in before.items() if now.get(k) is not v and not _installed(now.get(k))]
            if isinstance(owner, type):  # a new attribute may hide an inherited one
                new = [k for k in now.keys() - before.keys() if _inherited(owner, k) not in (None, now[k])]
                changed += [f"{name}.{k}" for k in new if not _installed(now[k])]
        return changed


def _inherited(owner: type, key: str) -> Any:
    """Return what a class inherits under this name; None if it inherits nothing."""
    return next((vars(b)[key] for b in owner.__mro__[1:] if callable(vars(b).get(key))), None)


def _installed(value: Any) -> bool:
    """True if it is a function or a class of an installed package."""
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    file = code.co_filename if code is not None else ""
    if isinstance(value, type):
        file = getattr(sys.modules.get(value.__module__), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file
