"""Training of a model with any kernels inside. A run that is stopped and resumed ends the same."""

from assay.models.studies.train.planning import Options, Plan, plan
from assay.models.studies.train.verb import run, train

__all__ = ["Options", "Plan", "plan", "run", "train"]
