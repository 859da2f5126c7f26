"""A process of its own for every kernel that runs: limits, crashes and hangs become facts the parent can report.

Threat model: honest mistakes and careless cheats. The parent draws the inputs, holds the oracle and gives the verdict;
nothing a kernel prints, caches or returns reaches that. Code that sets out to attack its own process (forging replies
on the private channel, patching torch inside the worker) is not held off:
an in-process harness is never called safe."""

from assay.worker.process import Limits, Pool, Worker, WorkerLost

__all__ = ["Limits", "Pool", "Worker", "WorkerLost"]
