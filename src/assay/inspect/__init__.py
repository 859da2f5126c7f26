"""inspect: what a kernel was compiled to, every instruction with all that is known of it."""

from __future__ import annotations

from assay.inspect.verb import Inspection, Options, inspect, inspections
from assay.verb import callable_room

__all__ = ["Inspection", "Options", "inspect", "inspections"]

callable_room(__name__, inspect)
