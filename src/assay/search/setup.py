"""The settings that the processes running a study's trials need. They are sent as JSON with every question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Setup:
    kind: str
    """`precision`, `architecture` or `sensitivity`."""
    model: str
    data: str = ""
    """Data set; empty: the model's own."""
    device: str = "cpu"
    quick: bool = False
    tokens: int = 0
    seed: int = 0
    format: str = ""
    """A template: `fixed:W:F`. Empty: nothing is compressed."""
    widths: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    """Offsets to the number of fraction bits that fits a tensor best."""
    of: tuple[str, ...] = ()
    """`weights`, `inputs`."""
    epochs: int = 0
    """Epochs of training with the formats in place."""
    mode: str = ""
    """Of an architecture: `train`, `compress` or `recover`."""
    training: int = 0
    """Epochs of an architecture's training; 0: those of its recipe."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Options and knobs of the model that are not searched."""
    knobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Knobs to search, with their values; without values, all that the knob declares. Empty: all knobs."""
    latency: bool = False
    """Whether latency is measured."""

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Setup:
        """Read a setup from JSON, in which tuples have become lists."""
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        return cls(**given | {"knobs": {name: tuple(values) for name, values in data["knobs"].items()}})
