"""bench: how fast, against the limit. Cold, hot and per call, over rounds, with every sample kept."""

from assay.bench import verb
from assay.bench.planning import Options, plan
from assay.store.keeper import keeping
from assay.verb import callable_room

__all__ = ["Options", "bench", "plan"]

bench = keeping(verb.bench)
callable_room(__name__, bench)
