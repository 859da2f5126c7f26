"""Quantisation and pruning of models: what they cost in accuracy and save in bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.record import Record


def quantize(model: str = "mnist-cnn", **settings: Any) -> Iterator[Record]:
    """Quantise a model with the settings of `planning.Quantize`. Yield a record for each point of the curve."""
    from assay.compress import curve, planning
    from assay.settings import settings_of

    yield from curve.run(planning.quantize(model, settings_of(planning.Quantize, settings)))


def prune(model: str = "mnist-cnn", **settings: Any) -> Iterator[Record]:
    """Prune a model with the settings of `planning.Prune`. Yield a record for each point of the curve."""
    from assay.compress import curve, planning
    from assay.settings import settings_of

    yield from curve.run(planning.prune(model, settings_of(planning.Prune, settings)))
