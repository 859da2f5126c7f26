"""machine: what can this device do? Measured, each probe's machine code proven first; kept as the device's model."""

from __future__ import annotations

from assay.machine.model import Figure, Model, best, kept, published
from assay.machine.verb import Options, machine
from assay.verb import callable_room

__all__ = ["Figure", "Model", "Options", "best", "kept", "machine", "published"]

callable_room(__name__, machine)
