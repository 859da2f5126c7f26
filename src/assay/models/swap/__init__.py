"""swap: puts kernels into a model and takes them out again bit for bit, with a report on every possible site."""

from __future__ import annotations

from assay.models.swap.report import Report, Site, State
from assay.models.swap.verb import swap
from assay.verb import callable_room

__all__ = ["Report", "Site", "State", "swap"]

callable_room(__name__, swap)
