"""check: is it right? Every kernel against a float64 oracle, on fuzzed workloads, in a process of its own."""

from __future__ import annotations

from assay.check.verb import KernelFailed, Options, check, plan, verify
from assay.verb import callable_room

__all__ = ["KernelFailed", "Options", "check", "plan", "verify"]

callable_room(__name__, check)
