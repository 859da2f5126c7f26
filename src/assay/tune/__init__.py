"""tune: finds the fastest values of a kernel's tunables among those that compute the right result."""

from assay.store.keeper import keeping
from assay.tune import verb
from assay.tune.planning import Options, plan
from assay.verb import callable_room

__all__ = ["Options", "plan", "tune"]

tune = keeping(verb.tune)
callable_room(__name__, tune)
