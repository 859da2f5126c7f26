"""Inference with the same weights through every way to compute the same function: what each kernel gains inside a
model, compared with what its time alone promises."""

from assay.models.studies.infer.planning import Effort, Options, Plan, Trained, plan
from assay.models.studies.infer.verb import infer, run

__all__ = ["Effort", "Options", "Plan", "Trained", "infer", "plan", "run"]
