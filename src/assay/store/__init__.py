"""The store of records: a SQLite file by default, PostgreSQL by URL. Nothing heavy is imported before it is opened."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from assay.errors import UsageError
from assay.store.run import Run

if TYPE_CHECKING:
    from assay.store.database import Store

__all__ = ["Run", "modules", "open_store"]


def open_store(where: str | Path | None = None, *, create: bool = True, patience: float = 60.0) -> Store:
    """Return the store at `where`, a file or a URL; None: $ASSAY_STORE, else `records.sqlite` in the user's data
    folder. Without `create`, a store that does not exist is an error, not an empty one. `patience`: seconds to wait for
    another writer, or for a server to answer."""
    try:
        connection, database = modules()
    except ModuleNotFoundError as missing:
        raise UsageError(f"records are kept through {missing.name}", fix=f"pip install {missing.name}") from None
    store: Store = database.Store(connection.place(where), create=create, patience=patience)
    return store


def modules() -> tuple[ModuleType, ModuleType]:
    """Return the modules that open a store. Importing them takes longer than opening it."""
    return import_module("assay.store.connection"), import_module("assay.store.database")
