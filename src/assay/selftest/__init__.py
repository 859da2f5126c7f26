"""selftest: tests the tester. Wrong and cheating kernels must be caught, and their fixed twins must pass."""

from assay.selftest import verb
from assay.selftest.entry import CorpusEntry, entries
from assay.store.keeper import keeping
from assay.verb import callable_room

__all__ = ["CorpusEntry", "entries", "selftest"]

selftest = keeping(verb.selftest)
callable_room(__name__, selftest)
