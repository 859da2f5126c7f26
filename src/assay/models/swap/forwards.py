"""The forwards that a swap gives to modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from assay.models.operators.tally import Tally
from assay.models.swap.functions import Watch, watching
from assay.models.swap.sites import Bind
from assay.models.swap.substitute import Substitute

Forward = Callable[..., Any]


def with_kernel(original: Forward, bind: Bind, argument: str, substitute: Substitute, watch: Watch | None) -> Forward:
    """Calls the kernel with the module's tensors and its one `argument`, and the original where the kernel cannot be
    called. `watch`: the mode that sees the functional calls around this module. It would see the original's own call,
    and make every look at a tensor slow."""

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
    """That of a module that stands in for another, with its calls counted."""

    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        tally.call()
        return original(self, *args, **kwargs)

    return forward
