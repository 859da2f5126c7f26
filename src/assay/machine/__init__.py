"""machine: measures what a device can do, after proving each probe's machine code, and keeps the result as its
model."""

from __future__ import annotations

from assay.machine import verb
from assay.machine.model import Figure, Model, best, kept, published
from assay.machine.verb import Options
from assay.store.keeper import keeping
from assay.verb import callable_room

__all__ = ["Figure", "Model", "Options", "best", "kept", "machine", "published"]

machine = keeping(verb.machine)
callable_room(__name__, machine)
