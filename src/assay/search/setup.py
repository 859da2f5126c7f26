"""What the processes that do the trials of one study must know. It travels as JSON with every question."""

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
    """Empty: the model's own."""
    device: str = "cpu"
    quick: bool = False
    tokens: int = 0
    seed: int = 0
    format: str = ""
    """A template: `fixed:W:F`. Empty: nothing is compressed."""
    widths: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    """What is added to the fraction that fits a tensor best."""
    of: tuple[str, ...] = ()
    """`weights`, `inputs`."""
    epochs: int = 0
    """Of training with the formats in place."""
    mode: str = ""
    """Of an architecture: `train`, `compress` or `recover`."""
    training: int = 0
    """Epochs of an architecture's training; 0: as its recipe says."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Options and knobs of the model that are not searched."""
    knobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Those that are searched, with the values asked for; a knob without values has all of its own. Empty: all."""
    latency: bool = False
    """Whether latency is measured."""

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Setup:
        """From JSON, where a tuple has become a list."""
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        return cls(**given | {"knobs": {name: tuple(values) for name, values in data["knobs"].items()}})
