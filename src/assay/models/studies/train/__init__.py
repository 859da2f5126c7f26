"""Training: a model learns, with any kernels inside it; stopped and resumed, it ends the same."""

from assay.models.studies.train.planning import Options, Plan, plan
from assay.models.studies.train.verb import run, train

__all__ = ["Options", "Plan", "plan", "run", "train"]
