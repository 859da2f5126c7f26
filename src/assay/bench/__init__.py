"""bench: times kernels cold, hot and per call, in rounds, and compares them with the limit. Every sample is kept."""

from assay.bench import verb
from assay.bench.planning import Options, plan
from assay.store.keeper import keeping
from assay.verb import callable_room

__all__ = ["Options", "bench", "plan"]

bench = keeping(verb.bench)
callable_room(__name__, bench)
