"""The store. Each record is one committed transaction: a killed process loses at most the one in flight."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

from sqlalchemy import URL, ColumnElement, Connection, Select, String, case, cast, func, inspect, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from assay.errors import UsageError
from assay.record import SCHEMA, VERBS, Record, Status, read
from assay.settings import did_you_mean
from assay.store import when
from assay.store.connection import connect, one_writer, shown
from assay.store.current import EVIDENCE, Entry, current, from_evidence
from assay.store.row import fit, from_row, to_row
from assay.store.run import Run
from assay.store.tables import VERSION, about, metadata, records

_READ = (
    "source.file",
    "source.hash",
    "provenance.cpu",
    "provenance.cores",
    *(f"evidence.{part}" for part in EVIDENCE),
)
"""Fields without a column of their own that decide whether a record is current."""
_BLOCK = 200
"""Rows fetched at a time: a store may hold more than memory does."""


class Store:
    """Records in a database. Usable as a context manager; several processes may use one store at once."""

    def __init__(self, url: URL, *, create: bool = True, patience: float = 60.0) -> None:
        self.where = shown(url)
        """A path, or the URL without its password."""
        if url.get_backend_name() == "sqlite":
            _folder(Path(str(url.database)), create)
        self._engine = connect(url, patience)
        self._insert = (sqlite if self._engine.dialect.name == "sqlite" else postgresql).insert
        if self._version() is None:
            self._create(create)
        if (version := self._version()) != VERSION:
            raise _other_version(self.where, version)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._engine.dispose()

    def add(self, record: Record) -> str:
        """Keep a record, which is safe when this returns, and return its key. The same record again changes nothing."""
        row = to_row(record)
        with self._writing() as connection:
            self._put(connection, row)
        return str(row["key"])

    def import_document(self, path: str | Path) -> tuple[int, int]:
        """Keep the records of a `--json` document, all or none. Return how many were new, and how many were known.

        A record is known if the store has one with the same content, not counting fields at their defaults. A record
        names its run, its time and its samples, so two measurements are never taken for one."""
        rows = [to_row(record) for record in _read(Path(path))]
        with self._writing() as connection:
            new = sum(self._put(connection, row) for row in rows)
        return new, len(rows) - new

    def records(
        self,
        *,
        run: str | None = None,
        verb: str | None = None,
        kernel: str | None = None,
        op: str | None = None,
        workload: str | None = None,
        status: str | None = None,
        device: str | None = None,
        since: str | datetime | None = None,
        limit: int | None = None,
        latest: bool = False,
    ) -> Iterator[Record]:
        """Yield records in the order they were made; `limit` keeps the newest. `kernel`: an address, a pattern
        (`gelu/*`), an op. `latest`: of the records that the run, op, kernel, device and time select, those that no
        newer one supersedes (assay.store.current); `verb`, `workload` and `status` then select among these."""
        chosen = _filter(run=run, op=op, device=device, since=since)
        outcome = _filter(verb=verb, workload=workload, status=status)
        in_order = (records.c.time, records.c.id)
        with self._reading() as connection:
            _refuse_unknown(connection, verb)
            chosen += self._named(connection, kernel)
            if latest:
                wanted = self._current(connection, chosen)
                known = set(connection.scalars(select(records.c.id).where(*chosen, *outcome)))
                ids = [i for i in wanted if i in known]
                ids = ids if limit is None else ids[max(0, len(ids) - limit) :]
                for start in range(0, len(ids), _BLOCK):
                    block = records.c.id.in_(ids[start : start + _BLOCK])
                    query = select(records.c.record).where(block).order_by(*in_order)
                    yield from map(from_row, connection.scalars(query))
                return
            matching = select(records.c.record, records.c.time, records.c.id).where(*chosen, *outcome)
            if limit is not None:
                matching = matching.order_by(*(column.desc() for column in in_order)).limit(limit)
            chosen_rows = matching.subquery().c
            ordered = select(chosen_rows.record).order_by(chosen_rows.time, chosen_rows.id)
            for text in connection.execution_options(yield_per=_BLOCK).scalars(ordered):
                yield from_row(text)

    def _current(self, connection: Connection, chosen: list[ColumnElement[bool]]) -> list[int]:
        """Return the ids of the chosen records that no other one of them supersedes, in the order they were made."""
        c = records.c
        inside = self._inside(_READ).label("inside")
        columns = (c.id, c.verb, c.run, c.kernel, c.backend, c.workload, c.dtype, c.device, c.status, inside)
        entries = []
        for row in connection.execute(select(*columns).where(*chosen).order_by(c.time, c.id)):
            file, source, cpu, cores, *evidence = json.loads(row.inside)
            entry = Entry(
                verb=row.verb,
                run=row.run,
                kernel=row.kernel,
                file=str(file or ""),
                source=str(source or ""),
                workload=row.workload,
                dtype=row.dtype,
                device=row.device,
                cores=str(cores or "") if row.device == cpu else "",
                status=row.status,
                **from_evidence(row.verb, row.backend, dict(zip(EVIDENCE, evidence, strict=True))),
            )
            entries.append((entry, row.id))
        return [i for _, i in current(entries)]

    def runs(
        self,
        *,
        verb: str | None = None,
        kernel: str | None = None,
        status: str | None = None,
        since: str | datetime | None = None,
        limit: int | None = None,
    ) -> list[Run]:
        """Return the runs, newest first, counting only the records that match."""
        c = records.c
        with self._reading() as connection:
            _refuse_unknown(connection, verb)
            chosen = [*_filter(verb=verb, status=status, since=since), *self._named(connection, kernel)]
            groups = (c.run, c.verb, c.device, c.commit, c.status)
            sums = (func.count().label("n"), func.min(c.time).label("first"), func.max(c.time).label("last"))
            query: Select[Any] = select(*groups, *sums, func.max(c.id).label("id")).where(*chosen).group_by(*groups)
            by_run: dict[str, list[Any]] = {}
            for row in connection.execute(query):
                by_run.setdefault(row.run, []).append(row)
            kernels: dict[str, set[str]] = {}
            for run, name in connection.execute(select(c.run, c.kernel).where(*chosen).distinct()):
                kernels.setdefault(run, set()).add(name)
        newest = sorted(by_run.values(), key=lambda rows: max((r.last, r.id) for r in rows), reverse=True)
        return [_run(rows, kernels[rows[0].run]) for rows in newest[:limit]]

    def timed(self) -> dict[str, set[tuple[str, str, str]]]:
        """Return the kernel, workload and device of each timing, by run of bench, newest run first."""
        c = records.c
        query = select(c.run, c.kernel, c.workload, c.device).where(c.verb == "bench", c.median.is_not(None)).distinct()
        by_run: dict[str, set[tuple[str, str, str]]] = {}
        with self._reading() as connection:
            for run, *cell in connection.execute(query):
                by_run.setdefault(run, set()).add((cell[0], cell[1], cell[2]))
        return dict(sorted(by_run.items(), reverse=True))  # ids sort by time

    def run(self, text: str, *, verb: str | None = None) -> str:
        """Return the id of a run that is given in full, by a unique beginning, or as `last`."""
        ids = [r.id for r in self.runs(verb=verb)]
        if text in ids:
            return text
        matching = ids[:1] if text == "last" else [i for i in ids if text and i.startswith(text)]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise UsageError(f"'{text}' begins {len(matching)} runs: {', '.join(matching[:5])}", fix="write more of it")
        fix = f"the newest are: {', '.join(filter(None, ids[:5]))}" if ids else "no run is recorded there yet"
        raise UsageError(f"no run '{text}' in {self.where}", fix=fix)

    def _named(self, connection: Connection, kernel: str | None) -> list[ColumnElement[bool]]:
        """Return the condition for `kernel`, read as `assay check` reads it. Patterns are matched in Python, since no
        two databases agree on them."""
        if not kernel:
            return []
        known = connection.scalars(select(records.c.kernel).distinct())
        return [records.c.kernel.in_([k for k in known if fnmatchcase(k, kernel) or k.partition("/")[0] == kernel])]

    def _inside(self, paths: Sequence[str]) -> ColumnElement[str]:
        """Return the values at these paths inside a record's JSON, as the text of a JSON array. They are read together,
        because reading a record's text takes most of the time."""
        text: ColumnElement[str] = records.c.record  # older records may hold infinities, which JSON does not allow
        if self._engine.dialect.name == "sqlite":
            valid = case((func.json_valid(text) == 1, text), else_="{}")
            return func.json_extract(valid, *(f"$.{path}" for path in paths))
        for number in ("-Infinity", "Infinity", "NaN"):
            text = func.replace(text, f": {number}", ": null")
        values = (cast(text, postgresql.JSON)[tuple(path.split("."))] for path in paths)
        return cast(func.json_build_array(*values), String)

    def _put(self, connection: Connection, row: dict[str, Any]) -> bool:
        """Insert a row; return whether it was new."""
        put = self._insert(records).values(row).on_conflict_do_nothing(index_elements=["key"])
        return connection.scalar(put.returning(records.c.id)) is not None

    def _version(self) -> int | None:
        with self._reading() as connection:
            return connection.scalar(select(about.c.version)) if inspect(connection).has_table(about.name) else None

    def _create(self, allowed: bool) -> None:
        """Create all tables in one transaction, unless another process has done so."""
        with self._writing() as connection:
            there = inspect(connection)
            if there.has_table(about.name):
                return
            if there.has_table(records.name):
                raise UsageError(f"{self.where} has a table 'records' that is not Assay's", fix="name another place")
            if not allowed:
                raise _missing(self.where)
            metadata.create_all(connection)
            connection.execute(about.insert().values(version=VERSION))

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._usage_errors(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._usage_errors(), one_writer(self._engine).begin() as connection:
            yield connection

    @contextmanager
    def _usage_errors(self) -> Iterator[None]:
        """Raise the database's errors as UsageErrors."""
        try:
            yield
        except DBAPIError as problem:
            lines = str(problem.orig).strip().splitlines()
            fix = "is it there, is it a store, may you write to it? --store or ASSAY_STORE names another"
            raise UsageError(f"the store {self.where}: {lines[0] if lines else problem}", fix=fix) from problem


def _refuse_unknown(connection: Connection, verb: str | None) -> None:
    """Raise UsageError for a verb that no record can have. The store may hold records of a newer Assay's verbs."""
    if not verb or verb in VERBS or connection.scalar(select(records.c.id).where(records.c.verb == fit(verb)).limit(1)):
        return
    raise UsageError(f"no verb '{verb}' has records", fix=f"{did_you_mean(verb, VERBS)}one of: {', '.join(VERBS)}")


def _filter(*, since: str | datetime | None = None, **equal: str | None) -> list[ColumnElement[bool]]:
    if (status := equal.get("status")) and status not in list(Status):
        raise UsageError(f"no status '{status}'", fix=f"one of: {', '.join(Status)}")
    wanted = [records.c[name] == fit(str(value)) for name, value in equal.items() if value is not None]
    return [*wanted, records.c.time >= when.since(since)] if since else wanted


def _run(rows: list[Any], kernels: set[str]) -> Run:
    """Return a run from its rows: one for each verb, device, commit and status."""
    return Run(
        id=rows[0].run,
        verbs=tuple(sorted({r.verb for r in rows})),
        first=min(r.first for r in rows),
        last=max(r.last for r in rows),
        devices=tuple(sorted({r.device for r in rows if r.device})),
        commit=", ".join(sorted({r.commit for r in rows if r.commit})),
        counts={status: n for status in Status if (n := sum(r.n for r in rows if r.status == status))},
        kernels=tuple(sorted(kernels)),
    )


def _read(path: Path) -> list[Record]:
    try:
        if json.loads(path.read_text())["schema"] > SCHEMA:
            raise UsageError(f"{path} was written by a newer Assay", fix="pip install -U kernel-assay")
        return read(path)
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}", fix="name a document that --json or --out wrote") from None
    except (ValueError, KeyError, TypeError) as problem:
        what = f"{path} is not a document of records: {str(problem).splitlines()[0]}"
        raise UsageError(what, fix="write one with --json or --out") from None


def _folder(file: Path, create: bool) -> None:
    if not create and not file.exists():
        raise _missing(str(file))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = "it is a file, not a folder" if isinstance(problem, FileExistsError) else problem.strerror
        raise UsageError(f"{file.parent}: {reason}", fix="name another place: --store or ASSAY_STORE") from None


def _missing(where: str) -> UsageError:
    return UsageError(
        f"no store at {where}", fix="`assay history --import FILE.json --store …` makes one from a document"
    )


def _other_version(where: str, version: int | None) -> UsageError:
    older = (
        "with the Assay that wrote it: `assay history --out all.json`; with this one: "
        "`assay history --store NEW.sqlite --import all.json`"
    )
    newer = "pip install -U kernel-assay, or name another store: --store or ASSAY_STORE"
    what = f"the store {where} is of version {version}, this Assay reads {VERSION}"
    return UsageError(what, fix=newer if version is not None and version > VERSION else older)
