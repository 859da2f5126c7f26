"""A process of its own for every kernel that runs: limits, crashes and hangs become facts the parent can report.

Threat model: honest mistakes and careless cheats. The parent draws the inputs, holds the oracle and gives the verdict;
nothing a kernel prints, caches or returns reaches that, and what is no answer to the parent's question is refused. Code
that sets out to attack its own process (forging replies on the private channel with the nonce of the question, patching
torch inside the worker) is not held off: an in-process harness is never called safe."""

from assay.worker.asking import Worker
from assay.worker.limits import Limits, WorkerLost
from assay.worker.process import Pool

__all__ = ["Limits", "Pool", "Worker", "WorkerLost"]
