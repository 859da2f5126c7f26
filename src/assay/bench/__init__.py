"""bench: how fast, against the limit. Cold, hot and per call, over rounds, with every sample kept."""

from __future__ import annotations

from assay.bench.verb import Options, bench, plan
from assay.verb import callable_room

__all__ = ["Options", "bench", "plan"]

callable_room(__name__, bench)
