"""Where a store is: what the user wrote, as one URL."""

import os
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from assay import host
from assay.errors import UsageError

_FIX = "name a file (records.sqlite) or a server (postgresql://user@host/database)"


def place(where: str | Path | None = None) -> URL:
    """The argument, else $ASSAY_STORE, else the user's data folder."""
    text = str(where or os.environ.get("ASSAY_STORE") or host.data_folder() / "records.sqlite")
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).expanduser()))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The text itself may hold a password: it is not repeated.
        raise UsageError("the store's URL cannot be read", fix=_FIX) from None
    kind = url.drivername.partition("+")[0]
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise UsageError(f"records are not kept in {kind}", fix=_FIX)
    if url.database in (None, "", ":memory:"):
        raise UsageError("a store in memory would outlive nothing", fix=_FIX)
    return url


def shown(url: URL) -> str:
    """For messages: a path, or the URL without its password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.render_as_string(hide_password=True).replace("+psycopg", "", 1)
