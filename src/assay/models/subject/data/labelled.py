"""What images and texts with labels have in common: all that training and scoring need to know of a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

from assay.models.subject.data.asset import Asset, Tell, silent

if TYPE_CHECKING:
    import torch

SPLITS = ("train", "validation", "test")
"""To learn from; to choose by; to be judged by, once, after all is chosen."""


class Form(Protocol):
    """What a model is given for each item, and how many logits it must give for it."""

    @property
    def classes(self) -> int: ...

    @property
    def item(self) -> str:
        """In words: `image`."""
        ...

    @property
    def form(self) -> str:
        """The item and what a model is called with for it: `image of 1 × 28 × 28`."""
        ...


class Labelled(Form, Protocol):
    """Items of one split, in memory."""

    @property
    def name(self) -> str:
        """Of the data set."""
        ...

    @property
    def labels(self) -> torch.Tensor:
        """int64, one for each item."""
        ...

    @property
    def sha256(self) -> Mapping[str, str]:
        """Of the files they were read from."""
        ...

    @property
    def scoring_batch(self) -> int:
        """Items in a batch when a model is scored."""
        ...

    def __len__(self) -> int: ...

    def part(self, begin: int, end: int) -> Self: ...

    def to(self, device: str) -> Self: ...

    def inputs(self, which: torch.Tensor | slice, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
        """The arguments of a forward pass over those items; floating ones in `dtype`."""
        ...

    def order(self, generator: torch.Generator, batch: int) -> torch.Tensor:
        """The order of an epoch: each index once. Consecutive ones make the batches; only the last may be smaller."""
        ...

    def batches(self, size: int) -> Iterator[torch.Tensor | slice]:
        """Each item once, in batches that are quick to evaluate."""
        ...


@dataclass(frozen=True)
class Quick:
    """What `--quick` uses of a data set: minutes become seconds on two cores."""

    sizes: Mapping[str, int]
    """Items of each split."""
    tokens: int = 0
    """Of a text, at most, where nobody asks for more; 0: these are no texts."""


@dataclass(frozen=True)
class DataSet:
    """A data set by its name, before anything of it is read."""

    name: str
    assets: tuple[Asset, ...]
    """What must be fetched for it."""
    classes: int
    item: str
    form: str
    sizes: Mapping[str, int]
    """Items of each split."""
    blank: Callable[[int], tuple[torch.Tensor, ...]]
    """Inputs of a forward pass over so many items without content, to try a model with."""
    read: Callable[[tuple[str, ...], int, Tell], tuple[Labelled, ...]] = field(repr=False)
    """Splits, by name; at most so many tokens of each text."""
    quick: Quick
    tokens: int = 0
    """The most tokens of a text that a model is given; 0: these are no texts."""

    def load(self, *splits: str, tokens: int = 0, tell: Tell = silent) -> tuple[Labelled, ...]:
        """Those splits: from the cache, or fetched into it first. `tokens`: cut texts there; 0: at the usual length."""
        return self.read(splits, tokens or self.tokens, tell)

    def here(self) -> bool:
        """Whether nothing need be fetched."""
        return all(asset.here() for asset in self.assets)
