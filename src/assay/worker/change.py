"""Chooses the elements of a timed call's inputs that differ from the values drawn. Every call of a batch gets changes
of its own, so that its inputs are new and a result kept from an earlier call is wrong. The worker makes the changes,
and the parent repeats them from the seed before it judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_ONE_OF, _MOST = 4096, 1 << 16


def places(seed: int, number: int, length: int, sets: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return, for the input of that number and `length`, the elements that change, the same in every set, and for each
    set how far behind them (cyclically) the elements are whose drawn values they take. The values come from the same
    tensor, so that they stay in its range."""
    import torch

    rng = torch.Generator().manual_seed(seed + number)
    count = max(1, min(length // _ONE_OF, _MOST))
    return torch.randint(length, (count,), generator=rng), torch.randint(1, length, (sets,), generator=rng)


def changed(values: torch.Tensor, seed: int, number: int, sets: int, index: int) -> torch.Tensor:
    """Return an input as the call on the set of that index had it."""
    drawn = values.flatten()
    if drawn.numel() < 2:
        return values
    where, away = places(seed, number, drawn.numel(), sets)
    result = drawn.clone()
    result[where] = drawn[(where + away[index]) % drawn.numel()]
    return result.view(values.shape)
