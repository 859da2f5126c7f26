"""The interface of a study's subject, and its result for a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from assay.compress.evidence import Layer
from assay.errors import AssayError

if TYPE_CHECKING:
    from torch import nn

    from assay.compress.treatment import Treatment
    from assay.search.space import Space


class Infeasible(AssayError):
    """The knobs' values are incompatible: the trial is pruned, with this as its reason."""


@dataclass(frozen=True)
class Judged:
    """The measured results of a model."""

    accuracy: float
    """Fraction of the validation split."""
    bits: int
    weights: int
    test: float | None = None
    """Fraction of the test split; only of winners and their control."""
    latency: float | None = None
    file: str = ""
    layers: list[Layer] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Judged:
        return cls(**dict(data) | {"layers": [Layer(**layer) for layer in data["layers"]]})


class Subject(Protocol):
    """Lives in the trials' process and holds what they share: the data and the base model."""

    def space(self) -> Space: ...

    def sizes(self) -> dict[str, int]:
        """Return the number of items used of each split, and the maximum number of tokens of an item."""
        ...

    def control(self, test: bool = False) -> Judged:
        """Judge the same model and training without what is searched. `test`: on the test split too."""
        ...

    def judged(self, point: Mapping[str, str], test: bool = False, file: Path | None = None) -> Judged:
        """Make and judge the point's model. `test`: on the test split too. `file`: where to save it. Raise Infeasible
        if the combination cannot be built."""
        ...

    def built(self, point: Mapping[str, str]) -> Built:
        """Return the point's model before any training, for the proof that every knob has an effect."""
        ...


@dataclass(frozen=True)
class Built:
    model: nn.Module
    inputs: tuple[tuple[Any, ...], dict[str, Any]]
    """Arguments of a forward pass; the same for all points."""
    size: int = 0
    """Bits of the searched tensors, since two points may compute the same with different numbers of bits."""


def described(path: str, treatment: Treatment) -> Layer:
    names = {part: form.name for part in ("weight", "bias", "input") if (form := getattr(treatment, part)) is not None}
    return Layer(path, **names)
