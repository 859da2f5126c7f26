"""What a model declares: the knobs of its shape, and the recipe for training it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.errors import UsageError


@dataclass(frozen=True)
class Knob:
    """One parameter of a model's shape. `build` takes it by its name, as a string, like the model's options."""

    values: tuple[str, ...]
    """All allowed values, smallest first."""
    default: str
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of other knobs for which this one exists: one of the fourth layer exists at a depth of 4 or more."""

    def exists(self, chosen: Mapping[str, str]) -> bool:
        """Return whether the knob exists, given the values of all knobs on which it depends."""
        return all(chosen[name] in values for name, values in self.where.items())


def turned(model: str, knobs: Mapping[str, Knob], asked: Mapping[str, str]) -> dict[str, str]:
    """Return the requested knobs that are not at their defaults. Raise UsageError for a value that a knob does not
    have, and for a knob that does not exist given the others."""
    whole = {name: asked.get(name, knob.default) for name, knob in knobs.items()}
    for name, value in asked.items():
        knob = knobs[name]
        if value not in knob.values:
            raise UsageError(f"{model}: no {name} '{value}'", fix=f"one of: {', '.join(knob.values)}")
        if value != knob.default and not knob.exists(whole):
            needs = " and ".join(f"{other} {' or '.join(values)}" for other, values in knob.where.items())
            raise UsageError(f"{model} has no {name} as it is", fix=f"it needs {needs}")
    return {name: value for name, value in whole.items() if value != knobs[name].default}


@dataclass(frozen=True)
class Recipe:
    """How a model is trained by default."""

    epochs: int = 5
    batch: int = 64
    lr: float = 3e-3
    """Peak learning rate."""
    weight_decay: float = 0.01
    patience: int = 3
    """Epochs without improvement after which training ends."""
