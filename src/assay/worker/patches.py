"""Inside a worker: functions of torch, numpy, time and Python itself that a kernel has replaced by its own.

The parent judges raw bytes, so a replaced function silences nothing there. It still changes what every other user of
the process computes, and is told for that."""

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
    """What stood where before a kernel's file was imported."""

    def __init__(self) -> None:
        self._owners = dict(_OWNERS)
        if (numpy := sys.modules.get("numpy")) is not None:
            self._owners["numpy"] = numpy
        self._before = {name: {k: v for k, v in vars(o).items() if callable(v)} for name, o in self._owners.items()}

    def found(self) -> list[str]:
        """Names that hold something else now, by a kernel's doing. Packages that replace functions of another when
        they are imported (compilers do) are left alone: what they put there is written in a package."""
        changed = []
        for name, owner in self._owners.items():
            before, now = self._before[name], vars(owner)
            changed += [f"{name}.{k}" for k, v in before.items() if now.get(k) is not v and not _installed(now.get(k))]
            if isinstance(owner, type):  # what hides an inherited one
                new = [k for k in now.keys() - before.keys() if _inherited(owner, k) not in (None, now[k])]
                changed += [f"{name}.{k}" for k in new if not _installed(now[k])]
        return changed


def _inherited(owner: type, key: str) -> Any:
    """What a class has under this name from those it is derived from; None if it has nothing."""
    return next((vars(b)[key] for b in owner.__mro__[1:] if callable(vars(b).get(key))), None)


def _installed(value: Any) -> bool:
    """Is it a function or a class that is written in an installed package?"""
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    file = code.co_filename if code is not None else ""
    if isinstance(value, type):
        file = getattr(sys.modules.get(value.__module__), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file
