"""What `assay compress` measured of a model: how right it still is, how many bits it takes, how fast it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from assay.evidence import Evidence, Figure


@dataclass(frozen=True)
class Layer:
    """What was done to one layer; empty: nothing."""

    path: str
    weight: str = ""
    """The format's name."""
    bias: str = ""
    input: str = ""
    kept: float | None = None
    """The share of weights that were not dropped."""


@dataclass(frozen=True)
class Sizes:
    """Elements of each split that were used."""

    train: int
    validation: int
    test: int
    tokens: int = 0
    """Of a text, at most; 0: these are no texts."""


@dataclass(frozen=True)
class CompressEvidence(Evidence):
    study: str = ""
    """`quantize` or `prune`."""
    method: str = ""
    """`ptq`, `qat`, `l1`, `random`, or `control`: the same training without compression."""
    format: str = ""
    """With F or T where each tensor has its own."""
    width: int | None = None
    sparsity: float | None = None
    """Per cent."""
    scope: str = ""
    parts: list[str] = field(default_factory=list)
    """`weights`, `biases`, `inputs`; `activations`."""
    epochs: int | None = None
    """Of training after the base model's."""
    seed: int = 0
    device: str = ""
    base: str = ""
    """The SHA-256 of the weights it began with."""
    data: str = ""
    sizes: Sizes | None = None
    tf32: bool | None = None
    """Whether training multiplied in TF32; scores are in float32."""
    quick: bool = False
    accuracy: Annotated[float | None, Figure("share", "accuracy", "on the test split", "test_accuracy")] = None
    validation: Annotated[
        float | None, Figure("share", "validation accuracy", "on the validation split", "validation_accuracy")
    ] = None
    base_accuracy: Annotated[
        float | None, Figure("share", "accuracy before", "of the base model, on the test split", "base_accuracy")
    ] = None
    right: str = ""
    """Which elements of the test split were classified right: one bit each, base64."""
    bits: Annotated[
        int | None,
        Figure("", "bits", "of all tensors in the file: codes, scales, masks, and what was left alone", "bits"),
    ] = None
    bits_by_kind: dict[str, int] = field(default_factory=dict)
    base_bits: Annotated[int | None, Figure("", "bits before", "of the base model in fp32", "base_bits")] = None
    file_bytes: Annotated[int | None, Figure("B", "file", "on disk, with its header", "file_bytes")] = None
    file: str = ""
    """Where it was kept, if that was asked for."""
    latency: Annotated[float | None, Figure("s", "latency", "of one item, linear layers packed", "latency_seconds")] = (
        None
    )
    base_latency: Annotated[
        float | None, Figure("s", "latency before", "of the base model, timed in turn with it", "base_latency_seconds")
    ] = None
    simulated: str = ""
    """Why there is no latency: no packed kernel computes with this format."""
    layers: list[Layer] = field(default_factory=list)
