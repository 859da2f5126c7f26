"""What `assay search` found of one point of a space, and of the one it chose."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from assay.compress.evidence import Layer, Sizes
from assay.evidence import Evidence, Figure

SENSITIVITY = "sensitivity"
"""What suggested a trial that the sampler did not: the losses of each layer alone."""


@dataclass(frozen=True)
class Goal:
    """One of the things that a study makes as large or as small as it can."""

    name: str
    """`accuracy`, `bits`, `weights` or `latency`."""
    direction: str
    """`maximize` or `minimize`."""


@dataclass(frozen=True)
class SearchEvidence(Evidence):
    study: str = ""
    """`precision`, `architecture` or `sensitivity`."""
    name: str = ""
    """By which the storage knows it."""
    role: str = ""
    """`control`, `trial`, or `winner`: the test split is read for winners alone."""
    trial: int | None = None
    """Its number in the storage."""
    state: str = ""
    """`finished`, `pruned` (this combination cannot be built) or `failed`."""
    why: str = ""
    """Of a trial that did not finish."""
    attempts: int = 1
    """How often it was begun: a trial whose process was lost is run again."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The value of each knob."""
    suggested_by: str = ""
    """The sampler, or `SENSITIVITY`."""
    sampler: dict[str, Any] = field(default_factory=dict)
    """All its arguments."""
    goals: list[Goal] = field(default_factory=list)
    points: float | None = None
    """How far below the control's validation accuracy a model may be."""
    allowed: bool | None = None
    """Whether it is no further below."""
    best: bool = False
    """Whether no trial before it was better; with several goals: none is better in all of them."""
    mode: str = ""
    """Of an architecture: `train`, `compress` or `recover`."""
    format: str = ""
    """With W, F or T where each tensor has its own."""
    epochs: int | None = None
    """Of training with the formats in place."""
    seed: int = 0
    device: str = ""
    data: str = ""
    sizes: Sizes | None = None
    quick: bool = False
    accuracy: Annotated[
        float | None, Figure("share", "validation accuracy", "on the validation split", "search_validation_accuracy")
    ] = None
    test: Annotated[
        float | None, Figure("share", "test accuracy", "of a winner, on the test split", "winner_test_accuracy")
    ] = None
    control_accuracy: Annotated[
        float | None,
        Figure("share", "control", "validation accuracy of the control, trained alike", "control_accuracy"),
    ] = None
    control_test: Annotated[
        float | None, Figure("share", "control on test", "test accuracy of the control", "control_test_accuracy")
    ] = None
    bits: Annotated[
        int | None,
        Figure("", "bits", "of all tensors in the file of the model, scales and the like included", "search_bits"),
    ] = None
    control_bits: Annotated[int | None, Figure("", "control's bits", "of the control in fp32", "control_bits")] = None
    weights: Annotated[int | None, Figure("", "weights", "parameters of the model", "weights")] = None
    latency: Annotated[
        float | None,
        Figure("s", "latency", "of a forward pass, measured alone on the device", "search_latency_seconds"),
    ] = None
    file: str = ""
    """Where a winner was kept, if that was asked for."""
    layers: list[Layer] = field(default_factory=list)
