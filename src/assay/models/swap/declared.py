"""The ops of the library that stand for something in a model (`library/<op>/swap.py`)."""

from __future__ import annotations

from assay.catalog import library

OPS = tuple(dict.fromkeys(op for declared in library.swappable() for op in declared.ops))
"""Those that modules or functions compute."""
CALLED = tuple(dict.fromkeys(op for declared in library.swappable() if declared.functions for op in declared.ops))
"""Those that functions compute."""
FUSIONS = {"+".join(pair): op for declared in library.swappable() for op, pair in declared.fusions.items()}
"""Neighbours → the op that computes both."""
