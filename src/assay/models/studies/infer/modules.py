"""Which module of a model runs just now: told by hooks that hang on no module, so that nothing in the model (a fused
pair, say, which a hook would part) sees that it is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn.modules import module as hooks


@contextmanager
def watched(model: nn.Module, enter: Callable[[str], None], leave: Callable[[str, Any], None]) -> Iterator[None]:
    """While open, `enter(path)` and `leave(path, output)` are called around every module's forward. A module that
    stands in several places has the first of its paths; the model itself has the path ''."""
    paths = {module: path for path, module in model.named_modules()}

    def before(module: nn.Module, inputs: Any) -> None:
        if module in paths:
            enter(paths[module])

    def after(module: nn.Module, inputs: Any, output: Any) -> None:
        if module in paths:
            leave(paths[module], output)

    handles = [
        hooks.register_module_forward_pre_hook(before),
        hooks.register_module_forward_hook(after, always_call=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
