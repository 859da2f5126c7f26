"""check: compares every kernel with a float64 oracle, on fuzzed workloads, in a process of its own."""

from __future__ import annotations

from assay.check import verb
from assay.check.verb import KernelFailed, Options, plan, verify
from assay.store.keeper import keeping
from assay.verb import callable_room

__all__ = ["KernelFailed", "Options", "check", "plan", "verify"]

check = keeping(verb.check)
callable_room(__name__, check)
