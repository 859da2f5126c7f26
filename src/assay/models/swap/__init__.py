"""swap: kernels into a model, and out again bit for bit; and what became of every place where they could go."""

from __future__ import annotations

from assay.models.swap.report import Report, Site, State
from assay.models.swap.verb import swap
from assay.verb import callable_room

__all__ = ["Report", "Site", "State", "swap"]

callable_room(__name__, swap)
