"""Storage of studies: a database that Optuna reads and writes, by default a file in the data folder."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay import host
from assay.errors import Lacking, UsageError
from assay.store.connection import place, shown

FILE = "studies.sqlite"
_PATIENCE = 60
"""Seconds that a process waits while another one writes."""
_FIX = "name a file (--storage studies.sqlite) or a server that is up (--storage postgresql://user@host/database)"


def optuna() -> Any:
    """Return the `optuna` package with its log messages and experimental warnings silenced."""
    try:
        import optuna
    except ModuleNotFoundError:
        raise Lacking("searching needs Optuna", fix="pip install 'kernel-assay[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    return optuna


class Storage:
    """An open storage. Any problem with it is raised as a UsageError that names it."""

    def __init__(self, where: str = "") -> None:
        url = _place(where)
        self.name = shown(url)
        self._optuna = optuna()
        local = url.get_backend_name() == "sqlite"
        if local:
            _verify_file(Path(str(url.database)), asked=bool(where))
        options = {"connect_args": {"timeout": _PATIENCE} if local else {"connect_timeout": 10}}
        with self.explained(RuntimeError):  # written by another version of Optuna
            self.rdb = self._opened(url.render_as_string(hide_password=False), options)

    def _opened(self, url: str, options: Any) -> Any:
        """Open the storage, with retries: if two processes open a new one at once, both create its tables, and the
        second one finds them when it tries again."""
        from sqlalchemy.exc import DatabaseError

        for wait in (0.1, 0.3, 1.0):
            try:
                return _with_log(self._optuna.storages.RDBStorage(url, engine_kwargs=dict(options)))
            except DatabaseError as problem:
                if not any(sign in str(problem) for sign in ("already exists", "UNIQUE constraint", "duplicate key")):
                    raise
                time.sleep(wait)
        return _with_log(self._optuna.storages.RDBStorage(url, engine_kwargs=dict(options)))

    @contextlib.contextmanager
    def explained(self, *also: type[Exception]) -> Iterator[None]:
        """Turn errors of the database into UsageErrors, around code that reads or writes the storage."""
        from sqlalchemy.exc import DatabaseError, SQLAlchemyError

        broken = self._optuna.exceptions.StorageInternalError
        try:
            yield
        except (SQLAlchemyError, broken, *also) as problem:
            cause = problem.__cause__ if isinstance(problem, broken) and problem.__cause__ else problem
            said = str(getattr(cause, "orig", None) or cause).strip().splitlines()[0]
            unreadable = isinstance(cause, DatabaseError) and ("not a database" in said or "malformed" in said)
            what = "is damaged, or no database" if unreadable else "cannot be used"
            raise UsageError(f"the storage of studies {self.name} {what}: {said}", fix=_FIX) from None
        except ModuleNotFoundError as problem:
            raise Lacking(f"studies there need {problem.name}", fix="pip install 'kernel-assay[postgres]'") from None

    def names(self) -> list[str]:
        with self.explained():
            return [str(name) for name in self._optuna.get_all_study_names(self.rdb)]

    def study(self, name: str, directions: list[str], sampler: Any) -> Any:
        """Return the study of that name, creating it if needed."""
        with self.explained():
            return self._optuna.create_study(
                storage=self.rdb, study_name=name, directions=directions, sampler=sampler, load_if_exists=True
            )

    def delete(self, name: str) -> None:
        with self.explained():
            self._optuna.delete_study(study_name=name, storage=self.rdb)


def _place(where: str) -> Any:
    server = os.environ.get("ASSAY_STORE", "")
    return place(where or (server if server.startswith("postgres") else host.data_folder() / FILE))


def _verify_file(file: Path, asked: bool) -> None:
    if not asked:
        file.parent.mkdir(parents=True, exist_ok=True)
    elif not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent} for the storage of studies", fix=_FIX)


def _with_log(rdb: Any) -> Any:
    """Switch SQLite to a write-ahead log, so that the many small writes of a trial do not each wait for the disk. The
    writes of a killed process survive; a power cut may lose the last trials, but does not damage the file."""
    from sqlalchemy import event

    if rdb.engine.dialect.name == "sqlite":

        def prepare(connection: Any, _: object) -> None:
            with contextlib.suppress(sqlite3.OperationalError):  # fails while another process writes without a log
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")

        event.listen(rdb.engine, "connect", prepare)
        rdb.engine.dispose()  # existing connections were opened without it
    return rdb
