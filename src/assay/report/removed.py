"""Separates the records of kernels that their source does not declare any more: they were renamed or deleted.

Files are looked up from the current folder, as the verbs do. Where nothing can be told, a record counts as before: if
its file cannot be read, or is missing and was never in the git repository there, since it may be on another machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from assay import tool
from assay.catalog import library
from assay.catalog.derived import LANGUAGES
from assay.catalog.reader import kernels_in, op_names
from assay.errors import AssayError
from assay.kernel import Address
from assay.record import LIBRARY, Record

VERBS = ("check", "bench", "inspect", "tune")
"""The verbs whose records are about a kernel's source."""
_LONGEST = 5.0
"""Seconds that git may search a repository's history."""


@dataclass(frozen=True)
class Removed:
    """A record of a kernel that is no longer in the source."""

    record: Record
    why: str


def separated(records: Iterable[Record]) -> tuple[list[Record], list[Removed]]:
    """Return the records of kernels that exist or may exist, and those of kernels that do not."""
    sources = _Sources()
    kept, removed = [], []
    for record in records:
        if why := sources.why_removed(record):
            removed.append(Removed(record, why))
        else:
            kept.append(record)
    return kept, removed


class _Sources:
    """The source files as they are now, each read once."""

    def __init__(self) -> None:
        self._declared: dict[str, set[str] | None] = {}
        self._tracked: dict[str, bool] = {}

    def why_removed(self, record: Record) -> str:
        """Return why the record's kernel does not exist any more; empty if it does, or if nothing can be told."""
        if record.verb not in VERBS or not record.backend or "file" not in record.source:
            return ""
        file = str(record.source["file"] or "")  # empty: derived from an op of the library
        if not file or file.startswith(LIBRARY):
            known = any(kernel.name == record.kernel for kernel in library.kernels())
            return "" if known else "the library does not have this kernel any more"
        if not Path(file).exists():
            if file not in self._tracked:
                self._tracked[file] = _was_tracked(Path(file))
            return f"{file} was deleted or renamed" if self._tracked[file] else ""
        if file not in self._declared:
            self._declared[file] = _declared(Path(file))
        declared = self._declared[file]
        return "" if declared is None or record.kernel in declared else f"{file} does not declare it any more"


def _declared(file: Path) -> set[str] | None:
    """Return the addresses that a user's file declares, and those derived from its ops; None if that cannot be told."""
    if file.suffix != ".py":
        return None  # the address of a kernel in a .cu file follows from the file's name
    try:
        written = {kernel.name for kernel in kernels_in(file)}
        return written | {str(Address(op, *language)) for op in op_names(file) for language in LANGUAGES}
    except AssayError:
        return None


def _was_tracked(file: Path) -> bool:
    """Return whether a missing file was once in the git repository that its folder belongs to."""
    path = file.absolute()
    folder = next(parent for parent in path.parents if parent.is_dir())
    try:
        command = ("git", "-C", str(folder), "log", "-1", "--format=%h", "--", str(path))
        return bool(tool.call(command, limit=_LONGEST).stdout.strip())
    except (OSError, AssayError):
        return False
