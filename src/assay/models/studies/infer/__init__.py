"""The same weights through every way to compute the same function: what each kernel buys inside a model, beside what it
would save by itself."""

from assay.models.studies.infer.planning import Effort, Options, Plan, Trained, plan
from assay.models.studies.infer.verb import infer, run

__all__ = ["Effort", "Options", "Plan", "Trained", "infer", "plan", "run"]
