"""Adds a hint to the reason of a failure if the op is a user's and may lack a declared magnitude."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from assay.catalog import library
from assay.lazy import torch
from assay.op import Op

_SMALL = 2.0**-2
"""A result this much smaller than the inputs may come from terms that cancel."""
_ROUNDING = 2.0**-18
"""The most that roundings of float32, 2⁻²⁴ each, add up to beside the inputs."""


@dataclass(frozen=True)
class Undeclared:
    op: str
    scale: float
    """The largest value that its inputs, or a product of all of them, can have."""

    def hint(self, got: float, want: float) -> str:
        """Return what may help after a failure; empty if the error is more than a rounding at the scale of the
        inputs, or the result is not small beside them."""
        if not abs(want) <= _SMALL * self.scale or not abs(got - want) <= _ROUNDING * self.scale:
            return ""
        return (
            "the result is small beside the inputs, where the kernel loses digits that the reference keeps. "
            f"If {self.op} allows that, declare at which scale its terms round: magnitude=… in @op "
            "(docs/ops.md, “How exact it must be”)"
        )


def undeclared(op: Op, inputs: Mapping[str, torch.Tensor]) -> Undeclared | None:
    """Return what is known of a user's op without a declared magnitude; None for any other op."""
    if op.magnitude is not None or not op.source or library.ROOT in Path(op.source).parents:
        return None
    largest = [float(x[x.isfinite()].abs().max()) for x in inputs.values() if _has_numbers(x)]
    return Undeclared(op.name, max([math.prod(largest), *largest])) if largest else None


def _has_numbers(x: torch.Tensor) -> bool:
    return x.is_floating_point() and x.itemsize > 1 and bool(x.isfinite().any())
