"""Functional calls (F.gelu, x.softmax(-1)) inside a module's forward: a TorchFunctionMode sees them and knows the
innermost module that made them. The mode is entered by the outermost watched module and left with it, so nothing
outside the model is seen; one for all, because every mode on the stack costs time in every PyTorch call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

from assay.models.swap.report import Entry
from assay.models.swap.resolved import FUNCTIONS
from assay.models.swap.substitute import Substitute
from assay.swappable import Bound


class Watched:
    """A module whose functional calls are seen: by op, the kernel that takes them, or why they are left."""

    def __init__(self) -> None:
        self.substitutes: dict[str, Substitute] = {}
        self.left: dict[str, Entry] = {}

    def call(self, bind: Callable[..., Bound], op: str, function: Any, args: Any, kwargs: Any) -> Any:
        try:
            bound = bind(*args, **kwargs)
        except (TypeError, AttributeError):  # `out=`, or a mistake of the caller's that PyTorch shall explain
            bound = "called with other arguments"
        if isinstance(bound, str):
            if op in self.substitutes:
                self.substitutes[op].refuse(bound)
            return function(*args, **kwargs)
        if bound.op in self.substitutes:
            result = self.substitutes[bound.op].attempt(bound)
            return function(*args, **kwargs) if result is None else result
        if bound.op in self.left:
            self.left[bound.op].tally.call()
        return function(*args, **kwargs)


class _Here(threading.local):
    """Which module runs in this thread."""

    watched: Watched | None = None
    inside = False


class Watch(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.here = _Here()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        watched = self.here.watched
        if watched is None or func not in FUNCTIONS:
            return func(*args, **kwargs)
        declared, bind = FUNCTIONS[func]
        return watched.call(bind, declared.ops[0], func, args, kwargs)


def watching(forward: Callable[..., Any], watch: Watch, watched: Watched | None) -> Callable[..., Any]:
    """A forward during which functional calls belong to this module (to none, with None: a known module's own)."""

    def watched_forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        here = watch.here
        outer, inside = here.watched, here.inside
        here.watched = watched
        try:
            if inside or watched is None:
                return forward(self, *args, **kwargs)
            here.inside = True
            with watch:
                return forward(self, *args, **kwargs)
        finally:
            here.watched, here.inside = outer, inside

    return watched_forward
