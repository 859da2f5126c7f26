"""The rule that decides which records describe the current state. All other records are history.

A newer record supersedes an older one
- of the same verb, kernel, workload, device, number of threads and parameters;
- that is a failure or an inconclusive check, if the newer one is a complete check of the same kernel, dtype, device and
  parameters that found nothing wrong. `check` shrinks a failure to a workload of its own, at which a fixed kernel is
  never recorded again. The kernel's source must have changed as well if the check was of fewer workloads than usual,
  which may miss the failure, or if the failure is of another verb, which may find what `check` does not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from assay.record import LIBRARY, Record, Status

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """The fields of a record that the rule reads."""

    verb: str
    kernel: str
    file: str
    """File of its source, which with the address identifies a kernel."""
    source: str
    """Hash of that source; empty if unknown."""
    workload: str
    dtype: str
    device: str
    cores: str
    """Number of cores of a CPU; empty for a GPU."""
    threads: str
    parameters: str
    asked: str
    """Number of workloads that the user asked a check for; empty if the plan decided."""
    status: str

    @classmethod
    def of(cls, record: Record) -> Entry:
        made = record.provenance
        return cls(
            verb=record.verb,
            kernel=record.kernel,
            file=str(record.source.get("file") or ""),
            source=str(record.source.get("hash") or ""),
            workload=record.workload,
            dtype=record.dtype,
            device=record.device,
            cores=str(made.get("cores") or "") if record.device == made.get("cpu") else "",
            threads=str(record.evidence.get("threads") or ""),
            parameters=str(record.evidence.get("parameters") or ""),
            asked=str(record.evidence.get("asked_workloads") or ""),
            status=str(record.status),
        )

    @property
    def point(self) -> tuple[str, ...]:
        """Key of the point: a newer record with the same key replaces an older one."""
        return self.verb, *self._kernel, self.workload, self.threads

    @property
    def subject(self) -> tuple[str, ...]:
        """Key of what a complete check judges: all workloads of a kernel in one dtype on one device."""
        return *self._kernel, self.dtype

    @property
    def clears(self) -> bool:
        """Whether it is a complete check that found nothing wrong. Its workload names only the dtype, since all axes
        were fuzzed. Where a kernel cannot run, building it is all that can be checked."""
        sound = self.status in (Status.PASS, Status.COMPILED)
        return self.verb == "check" and sound and self.workload == f"dtype={self.dtype}"

    def cleared_by(self, complete: Entry) -> bool:
        """Return whether a complete check of the same subject supersedes this older record as a fixed failure."""
        changed = bool(self.source and complete.source) and self.source != complete.source
        if self.verb == "check":
            return self.status in (Status.FAIL, Status.INCONCLUSIVE) and (changed or not complete.asked)
        return self.status == Status.FAIL and changed

    @property
    def _kernel(self) -> tuple[str, ...]:
        # The library's addresses are unique, and a kernel may move from one of its files to another.
        file = "" if self.file.startswith(LIBRARY) else self.file
        return self.kernel, file, self.device, self.cores, self.parameters


def current(entries: Iterable[tuple[Entry, T]]) -> list[tuple[Entry, T]]:
    """Return the entries that no later one supersedes. They must come in the order in which their records were made."""
    kept: dict[tuple[str, ...], tuple[Entry, T]] = {}
    points: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for entry, item in entries:
        of_subject = points.setdefault(entry.subject, set())
        if entry.clears:
            for point in [p for p in of_subject if kept[p][0].cleared_by(entry)]:
                of_subject.discard(point)
                del kept[point]
        kept.pop(entry.point, None)
        kept[entry.point] = entry, item
        of_subject.add(entry.point)
    return list(kept.values())


def current_records(records: Iterable[Record]) -> list[Record]:
    """Return the records that describe the current state, the oldest first. They may be given in any order."""
    in_order = sorted(records, key=lambda r: str(r.provenance.get("time", "")))
    return [record for _, record in current((Entry.of(r), r) for r in in_order)]
