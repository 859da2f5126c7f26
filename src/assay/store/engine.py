"""What differs between the two databases: how a connection is made, and how writers wait for each other.

No connection outlives its transaction (NullPool): a fork inherits none, and a server may close idle ones."""

import sqlite3
from contextlib import suppress
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event

from assay.errors import UsageError

_LOCK = 0x617373_6179
"""The number of the lock that writers of one PostgreSQL database share: "assay"."""
_WRITER = "assay_writer"


def connect(url: URL, patience: float) -> Engine:
    """`patience`: seconds a writer waits for another, and for a server to answer."""
    # psycopg takes less than 2 s for 2.
    options: dict[str, Any] = {"connect_timeout": max(2, round(min(patience, 10)))}
    try:
        engine = create_engine(url, poolclass=NullPool, connect_args=options if _remote(url) else {})
    except ModuleNotFoundError:
        raise UsageError("records in PostgreSQL need psycopg", fix="pip install 'psycopg[binary]'") from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _: _prepare(connection, patience))
    else:
        event.listen(engine, "connect", lambda connection, _: _bound(connection, patience))
    event.listen(engine, "begin", _begin)
    return engine


def _remote(url: URL) -> bool:
    return url.get_backend_name() != "sqlite"


def _bound(connection: Any, patience: float) -> None:
    """A writer that waits for another gives up after a while, as with SQLite."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {round(patience * 1000)}")
    connection.commit()


def one_writer(engine: Engine) -> Engine:
    """The same engine, in whose transactions nobody else writes. SQLite allows no other way; in PostgreSQL it keeps two
    imports from waiting for each other, and two openings from both making the tables."""
    return engine.execution_options(**{_WRITER: True})


def _begin(connection: Connection) -> None:
    writing = connection.get_execution_options().get(_WRITER)
    if connection.dialect.name == "sqlite":
        # At once, not at the first write: a reader that turns writer is refused, a writer that waits is not.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
    elif writing:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")


def _prepare(connection: sqlite3.Connection, patience: float) -> None:
    """A write-ahead log: readers and a writer do not wait for each other, and what a killed process committed is there.
    FULL: also after a power cut."""
    connection.isolation_level = None  # transactions are begun above, not guessed by the driver
    connection.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")
    connection.execute("PRAGMA synchronous = FULL")
    # The file remembers. Refused at once while another writes without a log; harmless, the next one tries again.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
