"""search: which precision of each layer, which architecture, is the best by measurement."""

from assay.search import verb
from assay.store.keeper import keeping
from assay.verb import callable_room

__all__ = ["search"]

search = keeping(verb.search)
callable_room(__name__, search)
