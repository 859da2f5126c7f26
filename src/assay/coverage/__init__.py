"""Plans the workloads that a kernel is tried on."""

from assay.coverage.plan import Plan, plan
from assay.coverage.row import Effort, Pair, Planned

__all__ = ["Effort", "Pair", "Plan", "Planned", "plan"]
