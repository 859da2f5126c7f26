"""Attention, the naive form against the fused ones: time, peak memory and error over sequence lengths."""

from assay.models.attention.verb import Options, attention, plan, run

__all__ = ["Options", "attention", "plan", "run"]
