"""`triton.autotune` in a check. On a GPU it runs every configuration many times on the call's own tensors whenever its
key is new, which takes seconds, and keeps the fastest; without a GPU it raises. Here a few configurations run once, and
the first of them is kept: another one for each key, so that all are tried. A kernel that adds to its output needs
`reset_to_zero` here, too."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

_FEW = 3
"""Configurations that run when a key is new."""


@cache
def patch() -> None:
    from triton.runtime.autotuner import Autotuner

    tuner: Any = Autotuner
    pruned = tuner.prune_configs

    def some(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        configs = pruned(self, kwargs)
        turn = len(self.cache) % len(configs)
        return [*configs[turn:], *configs[:turn]][:_FEW]

    tuner.prune_configs = some
    tuner.do_bench = property(lambda self: _once)


def _once(call: Callable[[], None], quantiles: tuple[float, ...]) -> list[float]:
    """Run a configuration; all take equally long, so the first one is kept."""
    call()
    return [1.0] * len(quantiles)
