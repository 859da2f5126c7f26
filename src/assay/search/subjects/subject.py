"""What every kind of study asks of its subject, and the answer it gets for a point."""

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
    """The knobs have values that do not go together: the trial is pruned, with this as its reason."""


@dataclass(frozen=True)
class Judged:
    """A model, and what was measured of it."""

    accuracy: float
    """On the validation split."""
    bits: int
    weights: int
    test: float | None = None
    """Of winners alone."""
    latency: float | None = None
    file: str = ""
    layers: list[Layer] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Judged:
        return cls(**dict(data) | {"layers": [Layer(**layer) for layer in data["layers"]]})


class Subject(Protocol):
    """Lives in a process of its own, and holds what all trials share: the data, the base model."""

    def space(self) -> Space: ...

    def sizes(self) -> dict[str, int]:
        """Items of each split that are used, and tokens of each."""
        ...

    def control(self, test: bool = False) -> Judged:
        """The same model and training without what is searched. `test`: on the test split too."""
        ...

    def judged(self, point: Mapping[str, str], test: bool = False, file: Path | None = None) -> Judged:
        """The point's model, made and judged. `test`: on the test split too. `file`: where it is kept. Infeasible for a
        combination that cannot be built."""
        ...

    def built(self, point: Mapping[str, str]) -> Built:
        """The point's model before any training, for the proof that every knob does something."""
        ...


@dataclass(frozen=True)
class Built:
    model: nn.Module
    inputs: tuple[tuple[Any, ...], dict[str, Any]]
    """Of a forward pass; the same for all points."""
    size: int = 0
    """Bits of what is searched, where two points may compute the same and take other numbers of bits."""


def described(path: str, treatment: Treatment) -> Layer:
    names = {part: form.name for part in ("weight", "bias", "input") if (form := getattr(treatment, part)) is not None}
    return Layer(path, **names)
