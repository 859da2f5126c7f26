"""search: find the best precision of each layer, or the best architecture, by measurement."""

from collections.abc import Iterator
from typing import Any

from assay.record import Record
from assay.verb import callable_room

__all__ = ["search"]


def search(kind: str, model: str, *, keep: bool = True, **settings: Any) -> Iterator[Record]:
    """Search for a better model: `precision`, `architecture` or `sensitivity`, with the settings of
    `assay.search.options`. Yield a record for the control, for each trial and for the winner, and keep them in the
    store."""
    # Imported late: the processes that run trials do not need these.
    from assay.search import verb
    from assay.store.keeper import keeping

    return keeping(verb.search)(kind, model, keep=keep, **settings)


callable_room(__name__, search)
