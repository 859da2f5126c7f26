"""The common interface of labelled images and texts, which is all that training and scoring use of a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

from assay.models.subject.data.asset import Asset, Tell, silent

if TYPE_CHECKING:
    import torch

SPLITS = ("train", "validation", "test")
"""For training; for choosing; and for the test, once, after everything is chosen."""


class Form(Protocol):
    """The input of a model for each item, and the number of logits it must return."""

    @property
    def classes(self) -> int: ...

    @property
    def item(self) -> str:
        """The kind of item, for messages: `image`."""
        ...

    @property
    def form(self) -> str:
        """The item and the model's input for it, for messages: `image of 1 × 28 × 28`."""
        ...


class Labelled(Form, Protocol):
    """Items of one split, in memory."""

    @property
    def name(self) -> str:
        """Name of the data set."""
        ...

    @property
    def labels(self) -> torch.Tensor:
        """int64, one for each item."""
        ...

    @property
    def sha256(self) -> Mapping[str, str]:
        """SHA-256 of the files they were read from."""
        ...

    @property
    def scoring_batch(self) -> int:
        """Items in a batch when a model is scored."""
        ...

    def __len__(self) -> int: ...

    def part(self, begin: int, end: int) -> Self: ...

    def to(self, device: str) -> Self: ...

    def inputs(self, which: torch.Tensor | slice, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
        """Return the arguments of a forward pass over those items, floating-point ones in `dtype`."""
        ...

    def order(self, generator: torch.Generator, batch: int) -> torch.Tensor:
        """Return the order of an epoch, with each index once. Consecutive indices form batches; only the last may be
        smaller."""
        ...

    def batches(self, size: int) -> Iterator[torch.Tensor | slice]:
        """Yield each item once, in batches that are fast to evaluate."""
        ...


@dataclass(frozen=True)
class Quick:
    """The part of a data set that `--quick` uses, so that minutes become seconds on two cores."""

    sizes: Mapping[str, int]
    """Items of each split."""
    tokens: int = 0
    """Default maximum number of tokens of a text; 0: the items are not texts."""


@dataclass(frozen=True)
class DataSet:
    """The description of a data set, before any of it is read."""

    name: str
    assets: tuple[Asset, ...]
    """Assets that must be fetched for it."""
    classes: int
    item: str
    form: str
    sizes: Mapping[str, int]
    """Items of each split."""
    blank: Callable[[int], tuple[torch.Tensor, ...]]
    """Returns inputs of a forward pass over that many blank items, to try out a model."""
    read: Callable[[tuple[str, ...], int, Tell], tuple[Labelled, ...]] = field(repr=False)
    """Reads splits by name, with a maximum number of tokens of each text."""
    quick: Quick
    tokens: int = 0
    """Maximum number of tokens of a text; 0: the items are not texts."""

    def load(self, *splits: str, tokens: int = 0, tell: Tell = silent) -> tuple[Labelled, ...]:
        """Load splits from the cache, fetching them if needed. `tokens`: maximum length of texts; 0: the usual."""
        return self.read(splits, tokens or self.tokens, tell)

    def here(self) -> bool:
        """Return whether everything is in the cache."""
        return all(asset.here() for asset in self.assets)
