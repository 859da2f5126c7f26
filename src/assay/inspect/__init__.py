"""inspect: shows the machine code that a kernel is compiled to, with everything known about each instruction."""

from __future__ import annotations

from assay.inspect import verb
from assay.inspect.verb import Inspection, Options, inspections
from assay.store.keeper import keeping
from assay.verb import callable_room

__all__ = ["Inspection", "Options", "inspect", "inspections"]

inspect = keeping(verb.inspect)
callable_room(__name__, inspect)
