"""Where a store is, and what differs between the two databases: how to connect, and how writers wait for each other.

No connection outlives its transaction (NullPool): a fork inherits none, and a server may close idle ones."""

import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from assay import host
from assay.errors import UsageError

_LOCK = 0x617373_6179
"""The number of the lock that writers of one PostgreSQL database share: "assay"."""
_WRITER = "assay_writer"
_FIX = "name a file (records.sqlite) or a server (postgresql://user@host/database)"


def place(where: str | Path | None = None) -> URL:
    """Return the URL of the store: from the argument, else from $ASSAY_STORE, else in the user's data folder."""
    text = str(where or os.environ.get("ASSAY_STORE") or host.data_folder() / "records.sqlite")
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).expanduser()))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The text may hold a password, so the message does not repeat it.
        raise UsageError("the store's URL cannot be read", fix=_FIX) from None
    kind = url.drivername.partition("+")[0]
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise UsageError(f"records are not kept in {kind}", fix=_FIX)
    if url.database in (None, "", ":memory:"):
        raise UsageError("a store in memory would be lost when the command ends", fix=_FIX)
    return url


def shown(url: URL) -> str:
    """Return the URL as messages show it: a path, or the URL without its password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.render_as_string(hide_password=True).replace("+psycopg", "", 1)


def connect(url: URL, patience: float) -> Engine:
    """Return an engine. `patience`: seconds that a writer waits for another one, or for a server to answer."""
    local = url.get_backend_name() == "sqlite"
    # psycopg raises a timeout of less than 2 s to 2 s.
    options = {} if local else {"connect_timeout": max(2, round(min(patience, 10)))}
    try:
        engine = create_engine(url, poolclass=NullPool, connect_args=options)
    except ModuleNotFoundError:
        raise UsageError("records in PostgreSQL need psycopg", fix="pip install 'psycopg[binary]'") from None
    # SQLAlchemy logs with a traceback that Ctrl-C came while a connection was closed, and raises it all the same.
    logging.getLogger("sqlalchemy.pool").addHandler(logging.NullHandler())
    prepare = _prepare_sqlite if local else _prepare_server
    event.listen(engine, "connect", lambda connection, _: prepare(connection, patience))
    event.listen(engine, "begin", _begin)
    return engine


def _prepare_server(connection: Any, patience: float) -> None:
    """Let a writer that waits for another one give up after a while, as with SQLite."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {round(patience * 1000)}")
    connection.commit()


def one_writer(engine: Engine) -> Engine:
    """Return the same engine, but writers take a lock. SQLite allows only one writer anyway; in PostgreSQL the lock
    keeps two imports from a deadlock, and two processes from both creating the tables."""
    return engine.execution_options(**{_WRITER: True})


def _begin(connection: Connection) -> None:
    writing = connection.get_execution_options().get(_WRITER)
    if connection.dialect.name == "sqlite":
        # The lock is taken now, not at the first write: SQLite refuses a reader that becomes a writer.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
    elif writing:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")


def _prepare_sqlite(connection: sqlite3.Connection, patience: float) -> None:
    """Use a write-ahead log: readers and a writer do not wait for each other, and what a killed process committed is
    kept; with FULL, also after a power cut."""
    connection.isolation_level = None  # transactions are begun above, not guessed by the driver
    connection.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")
    connection.execute("PRAGMA synchronous = FULL")
    # The file keeps this setting. It is refused while another process writes without a log; the next one tries again.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
