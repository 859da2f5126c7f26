"""selftest: test the tester. Wrong and cheating kernels must be caught, their mended twins must pass."""

from assay.selftest import verb
from assay.selftest.entry import Entry, entries
from assay.store.keeper import keeping
from assay.verb import callable_room

__all__ = ["Entry", "entries", "selftest"]

selftest = keeping(verb.selftest)
callable_room(__name__, selftest)
