"""Runs every kernel in a process of its own, so that the parent can report exceeded limits, crashes and hangs.

Threat model: honest mistakes and careless cheats. The parent draws the inputs, holds the oracle and gives the verdict;
nothing a kernel prints, caches or returns affects that, and a message that does not answer the parent's question is
refused. There is no defence against code that attacks its own process (forging replies on the private channel with the
nonce of the question, patching torch inside the worker): an in-process harness is never called safe."""

from assay.worker.asking import Worker
from assay.worker.limits import Limits, WorkerLost
from assay.worker.process import Pool

__all__ = ["Limits", "Pool", "Worker", "WorkerLost"]
