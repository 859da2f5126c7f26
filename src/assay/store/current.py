"""The rule that decides which records describe the current state. All other records are history.

A newer record supersedes an older one
- of the same verb, kernel, workload, device, target, number of threads and parameters; of a model also with the same
  kernels inside, and trained in the same way. A record that names no target or
  no number of threads answers for all of them: a failure that was found before anything was built or timed is
  superseded by the next result, whatever its target and threads. A kernel that bench skipped was not timed anew, so an
  older time stands. The records of one `inspect` run about several
  functions of a kernel stand together.
- that is a failure or an inconclusive check, if the newer one is a complete check of the same kernel, dtype, device,
  target and parameters that found nothing wrong. `check` shrinks a failure to a workload of its own, at which a fixed
  kernel is never recorded again. The kernel's source must have changed as well if the check was of fewer workloads than
  usual, which may miss the failure, or if the failure is of another verb, which may find what `check` does not.
- of the same kernel and dtype, of any verb and on any device, if the newer one is a check that was skipped because the
  kernel is not written for that dtype."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from assay.record import LIBRARY, Record, Status

T = TypeVar("T")
EVIDENCE = ("threads", "parameters", "asked_workloads", "target", "name", "written_for", "rules", "config")
"""The parts of a record's evidence that the rule reads."""
_ADD_A_SUFFIX = ("triton", "numba")
"""Languages that build sm_90 as sm_90a themselves: for them, these are one target."""


@dataclass(frozen=True)
class Entry:
    """The fields of a record that the rule reads."""

    verb: str
    run: str
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
    """Empty if nothing was timed, or on a GPU."""
    target: str
    """What the code was built for; empty if the outcome does not depend on it."""
    function: str
    """inspect: the function whose code it is."""
    parameters: str
    """Of a model too: what was swapped in it, and how it was trained."""
    asked: str
    """Number of workloads that the user asked a check for; empty if the plan decided."""
    status: str
    not_written: bool = False
    """check: whether the kernel was skipped because it is not written for the dtype."""

    @classmethod
    def of(cls, record: Record) -> Entry:
        made = record.provenance
        return cls(
            verb=record.verb,
            run=record.run,
            kernel=record.kernel,
            file=str(record.source.get("file") or ""),
            source=str(record.source.get("hash") or ""),
            workload=record.workload,
            dtype=record.dtype,
            device=record.device,
            cores=str(made.get("cores") or "") if record.device == made.get("cpu") else "",
            status=str(record.status),
            **from_evidence(record.verb, record.backend, record.evidence),
        )

    @property
    def point(self) -> tuple[str, ...]:
        """Key of the point. At one point, results for several targets and numbers of threads may stand."""
        return self.verb, *self._kernel, self.workload

    @property
    def subject(self) -> tuple[str, ...]:
        """Key of what a complete check judges: all workloads of a kernel in one dtype on one device."""
        return *self._kernel, self.dtype

    @property
    def code(self) -> tuple[str, ...]:
        """Key of the kernel and the dtype, on any device."""
        return self.kernel, self._file, self.dtype

    @property
    def clears(self) -> bool:
        """Whether it is a complete check that found nothing wrong. Its workload names only the dtype, since all axes
        were fuzzed. Where a kernel cannot run, building it is all that can be checked."""
        sound = self.status in (Status.PASS, Status.COMPILED)
        return self.verb == "check" and sound and self.workload == f"dtype={self.dtype}"

    def cleared_by(self, complete: Entry) -> bool:
        """Return whether a complete check of the same subject supersedes this older record as a fixed failure."""
        changed = bool(self.source and complete.source) and self.source != complete.source
        if self.verb in ("check", "inspect") and self.target not in ("", complete.target):
            return False
        if self.verb == "check":
            return self.status in (Status.FAIL, Status.INCONCLUSIVE) and (changed or not complete.asked)
        return self.status == Status.FAIL and changed

    def replaced_by(self, newer: Entry) -> bool:
        """Return whether a newer record of the same point supersedes this one."""
        if self.function != newer.function and self.run == newer.run:
            return False
        if self.verb == "bench" and newer.status == Status.SKIPPED != self.status:
            return False
        return all(
            old in ("", new) or (not new and newer.status == Status.FAIL)
            for old, new in ((self.threads, newer.threads), (self.target, newer.target))
        )

    @property
    def _kernel(self) -> tuple[str, ...]:
        return self.kernel, self._file, self.device, self.cores, self.parameters

    @property
    def _file(self) -> str:
        # The library's addresses are unique, and a kernel may move from one of its files to another.
        return "" if self.file.startswith(LIBRARY) else self.file


def from_evidence(verb: str, backend: str, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry that come from a record's evidence."""
    threads, parameters, asked, target, name, written_for, *model = (str(evidence.get(part) or "") for part in EVIDENCE)
    return {
        "threads": threads,
        "parameters": " ".join(filter(None, (parameters, *(model if verb == "model" else ())))),
        "asked": asked,
        "target": target.rstrip("af") if backend in _ADD_A_SUFFIX else target,
        "function": name if verb == "inspect" else "",
        "not_written": verb == "check" and bool(written_for),
    }


def current(entries: Iterable[tuple[Entry, T]]) -> list[tuple[Entry, T]]:
    """Return the entries that no later one supersedes. They must come in the order in which their records were made."""
    kept: dict[int, tuple[Entry, T]] = {}
    at_point: dict[tuple[str, ...], set[int]] = {}
    of_subject: dict[tuple[str, ...], set[int]] = {}
    of_code: dict[tuple[str, ...], set[int]] = {}
    for number, (entry, item) in enumerate(entries):
        same_point = at_point.setdefault(entry.point, set())
        same_subject = of_subject.setdefault(entry.subject, set())
        same_code = of_code.setdefault(entry.code, set())
        superseded = {n for n in same_point if kept[n][0].replaced_by(entry)}
        if entry.clears:
            superseded |= {n for n in same_subject if kept[n][0].cleared_by(entry)}
        if entry.not_written:
            superseded |= same_code
        for n in superseded:
            old, _ = kept.pop(n)
            at_point[old.point].discard(n)
            of_subject[old.subject].discard(n)
            of_code[old.code].discard(n)
        kept[number] = entry, item
        same_point.add(number)
        same_subject.add(number)
        same_code.add(number)
    return list(kept.values())


def current_records(records: Iterable[Record]) -> list[Record]:
    """Return the records that describe the current state, the oldest first. They may be given in any order."""
    in_order = sorted(records, key=lambda r: str(r.provenance.get("time", "")))
    return [record for _, record in current((Entry.of(r), r) for r in in_order)]
