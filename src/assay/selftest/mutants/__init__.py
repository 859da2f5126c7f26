"""mutants: makes small changes to the library's own kernels, each of which plain `check` must notice."""

from assay.selftest.mutants.evidence import MutantEvidence, Outcome, Score, score, summary
from assay.selftest.mutants.mutant import Mutant, mutants
from assay.selftest.mutants.trial import Options
from assay.selftest.mutants.verb import plan, run

__all__ = [
    "Mutant",
    "MutantEvidence",
    "Options",
    "Outcome",
    "Score",
    "mutants",
    "plan",
    "run",
    "score",
    "summary",
]
