"""Weights packed in a model: eight bits and fewer an element on the device, the originals in a file until undo.

Importing it makes `assay.swap(model, {"linear": "mx_linear"})` known, and the formats of torchao beside it."""

from __future__ import annotations

from assay.models.packed.packing import PACKINGS
from assay.models.swap.replacement import register

for _packing in PACKINGS:
    register(_packing)
