"""Runs jobs on a node of a Ray cluster, in a process with the same limits as a trial on this machine."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from assay.search.local import Local
from assay.search.scheduler import Job

_WAIT = 60.0
_MEMORY = 0.8
"""Fraction of a node's memory that its trials may use together."""


class Actor:
    """Runs one trial at a time, in a process that ends with the actor."""

    def __init__(
        self, child: str, environment: Mapping[str, str], memory: int, needs: Mapping[str, float], folder: str
    ) -> None:
        """`memory`: limit of a trial's resident memory in bytes; 0: its share of the node's. `needs`: amount of each
        resource that one trial takes. `folder`: the command's working directory, for files named relative to it."""
        with contextlib.suppress(OSError):
            os.chdir(folder)
        threads = {"OMP_NUM_THREADS": str(max(1, int(needs["CPU"])))}
        limit = memory or int(psutil.virtual_memory().total * _MEMORY * _share(needs))
        self._crew = Local(1, threads | dict(environment), limit, child=child)
        self._crew.__enter__()

    def name(self) -> str:
        """Return the machine's name, for messages."""
        return socket.gethostname()

    def do(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the outcome as plain data. A model to be kept is part of it, since the command's disk is elsewhere."""
        with tempfile.TemporaryDirectory() as folder:
            asked, kept = question, None
            if question.get("file"):
                kept = Path(folder) / Path(question["file"]).name
                asked = question | {"file": str(kept)}
            self._crew.submit(Job(0, asked, seconds))
            while (outcome := self._crew.outcome(_WAIT)) is None:
                pass
            plain: dict[str, Any] = {"seconds": outcome.seconds}
            if outcome.refused is not None:
                return plain | {"refused": outcome.refused.fields}
            if outcome.lost is not None:
                lost = outcome.lost
                return plain | {"lost": {"how": lost.how, "detail": lost.detail, "output": lost.output}}
            content = kept.read_bytes() if kept is not None and kept.exists() else None
            return plain | {"answer": outcome.answer, "content": content}


def _share(needs: Mapping[str, float]) -> float:
    """Return the fraction of this node that one trial takes."""
    import ray

    here = ray.get_runtime_context().get_node_id()
    has = next(node["Resources"] for node in ray.nodes() if node["NodeID"] == here)
    return min(1.0, max(amount / has[name] for name, amount in needs.items() if amount))
