"""machine: what can this device do? Measured, each probe's machine code proven first; kept as the device's model."""

from __future__ import annotations

from assay.machine import verb
from assay.machine.model import Figure, Model, best, kept, published
from assay.machine.verb import Options
from assay.store.keeper import keeping
from assay.verb import callable_room

__all__ = ["Figure", "Model", "Options", "best", "kept", "machine", "published"]

machine = keeping(verb.machine)
callable_room(__name__, machine)
