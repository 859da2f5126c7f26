"""mutants: small changes to the library's own kernels, each of which plain `check` must notice."""

from __future__ import annotations

from assay.selftest.mutants.evidence import MutantEvidence, Outcome, Score, score, summary
from assay.selftest.mutants.mutant import Mutant, mutants
from assay.selftest.mutants.verb import Options, plan, run

__all__ = ["MutantEvidence", "Mutant", "Options", "Outcome", "Score", "mutants", "plan", "run", "score", "summary"]
