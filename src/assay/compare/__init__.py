"""Compares two runs, cell by cell, by the rule in docs/compare.md."""

from assay.compare.rule import Change, Verdict
from assay.compare.verb import compare
from assay.verb import callable_room

__all__ = ["Change", "Verdict", "compare"]

callable_room(__name__, compare)
