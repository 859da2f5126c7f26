"""What a model declares for others to turn and choose: knobs of its shape, and how it is best trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.errors import UsageError


@dataclass(frozen=True)
class Knob:
    """One thing about a model's shape. `build` takes it by its name, as a string, like the model's options."""

    values: tuple[str, ...]
    """All that may be chosen, the smallest first."""
    default: str
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """It exists only where other knobs have one of these values: the fourth layer's, in a model of four or more."""

    def exists(self, chosen: Mapping[str, str]) -> bool:
        """Given the values of all knobs that it depends on."""
        return all(chosen[name] in values for name, values in self.where.items())


def turned(model: str, knobs: Mapping[str, Knob], asked: Mapping[str, str]) -> dict[str, str]:
    """Those of the knobs asked for that are not at their default; UsageError for a value that a knob does not have, and
    for a knob that does not exist beside the others."""
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
    """How a model is trained unless somebody asks otherwise."""

    epochs: int = 5
    batch: int = 64
    lr: float = 3e-3
    """The highest learning rate."""
    weight_decay: float = 0.01
    patience: int = 3
    """Epochs without gain after which training ends."""
