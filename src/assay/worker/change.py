"""Which elements of a timed call's inputs differ from the values that were drawn. Every call of a batch gets changes of
its own, so that its inputs have never been seen before: a result kept from an earlier call is wrong. The worker makes
them, the parent repeats them from the seed before it judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_ONE_OF, _MOST = 4096, 1 << 16


def places(seed: int, number: int, length: int, sets: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For the input of that number, of `length` elements: the elements that change, in every set the same, and for each
    set how far behind them (cyclically) the elements lie whose drawn values they take. Values of the same tensor, so
    that whatever range they must lie in is kept."""
    import torch

    rng = torch.Generator().manual_seed(seed + number)
    count = max(1, min(length // _ONE_OF, _MOST))
    return torch.randint(length, (count,), generator=rng), torch.randint(1, length, (sets,), generator=rng)


def changed(values: torch.Tensor, seed: int, number: int, sets: int, index: int) -> torch.Tensor:
    """An input as the call on the set of that index had it."""
    drawn = values.flatten()
    if drawn.numel() < 2:
        return values
    where, away = places(seed, number, drawn.numel(), sets)
    result = drawn.clone()
    result[where] = drawn[(where + away[index]) % drawn.numel()]
    return result.view(values.shape)
