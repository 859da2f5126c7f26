"""The replacement forwards that a swap gives to modules."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from assay.models.operators.contract import Tally
from assay.models.swap.report import Entry
from assay.models.swap.sites import FUNCTIONS, Bind
from assay.models.swap.substitute import Substitute
from assay.swappable import Bound


class Watched:
    """A module whose functional calls are intercepted. For each op: the kernel for them, or the entry of calls left."""

    def __init__(self) -> None:
        self.substitutes: dict[str, Substitute] = {}
        self.left: dict[str, Entry] = {}

    def call(self, bind: Callable[..., Bound], op: str, function: Any, args: Any, kwargs: Any) -> Any:
        try:
            bound = bind(*args, **kwargs)
        except (TypeError, AttributeError):  # `out=`, or a mistake of the caller, for which PyTorch raises its error
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
    """The watched module that runs in this thread."""

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
    """Return a forward during which functional calls belong to this module. With None they belong to no module, as for
    the calls of a known module's own forward."""

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


Forward = Callable[..., Any]


def with_kernel(original: Forward, bind: Bind, argument: str, substitute: Substitute, watch: Watch | None) -> Forward:
    """Return a forward that calls the kernel with the module's tensors and its one `argument`, or the original if the
    kernel cannot take the call. `watch`: the mode that intercepts functional calls around this module. It is disabled
    inside, since it would see the original's own call and slow down every access to a tensor."""

    def attempt(self: nn.Module, args: Any, kwargs: Any) -> torch.Tensor | None:
        if len(args) == 1 and not kwargs:
            x = args[0]
        else:
            x = None if args or len(kwargs) != 1 else kwargs.get(argument)
        if not isinstance(x, torch.Tensor):
            return substitute.refuse("called with other arguments")
        bound = bind(self, x)
        return substitute.refuse(bound) if isinstance(bound, str) else substitute.attempt(bound)

    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        result = attempt(self, args, kwargs)
        return original(self, *args, **kwargs) if result is None else result

    if watch is None:
        return forward

    def watched(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or not watch.here.inside:
            return forward(self, *args, **kwargs)
        with torch._C.DisableTorchFunction():
            result = attempt(self, args, kwargs)
        return original(self, *args, **kwargs) if result is None else result

    return watching(watched, watch, None)


def counted(original: Forward, tally: Tally) -> Forward:
    """Return the forward of a module that replaces another, with its calls counted."""

    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        tally.call()
        return original(self, *args, **kwargs)

    return forward
