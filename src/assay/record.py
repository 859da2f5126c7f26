"""The outcome of one verb on one kernel, workload and machine. Records are data: printed, stored, compared, drawn."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from assay.kernel import BACKENDS

LIBRARY = "assay/library/"
"""How the file of a record's kernel begins if it is one of the library's."""
SCHEMA = 2
"""Raised whenever a field changes its meaning or goes. Records of schema 1 are read unchanged: their fields have
the same meaning, and are `null` or empty where those of schema 2 are absent."""


class Status(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    COMPILED = "compiled"
    """Built, could not run here."""
    SKIPPED = "skipped"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Record:
    verb: str
    kernel: str
    workload: str
    """The printed workload; axes left out were fuzzed."""
    status: Status
    reason: str
    run: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    """What the verdict stands on; its shape depends on the verb (docs/records.md)."""
    replay: str = ""
    """The command that does this one thing again."""
    source: dict[str, Any] = field(default_factory=dict)
    """File, line and hash of the kernel's source."""
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    """What was built: name, target, hash of the machine code's .text, resources."""
    provenance: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    median: float | None = None
    """bench: seconds of one call, cold."""
    interval: tuple[float, float] | None = None
    """Of that median, at 95 %, over rounds."""
    samples: list[list[float]] | None = None
    """Every sample it comes from, by round."""
    instructions: list[dict[str, Any]] | None = None
    """inspect: the machine code, one row for each instruction (assay.inspect.row)."""
    schema: int = SCHEMA

    @property
    def address(self) -> str:
        """The address of the record's kernel: selftest's evidence names it, records of a machine have none."""
        if self.verb in _ABOUT_NO_KERNEL:
            return ""
        return str(self.evidence.get("kernel", "")) if self.verb == "selftest" else self.kernel

    @property
    def op(self) -> str:
        return self.address.partition("/")[0] if "/" in self.address else ""

    @property
    def backend(self) -> str:
        """The language; empty where the address names none."""
        named = self.address.partition("/")[2].partition(":")[0].partition(" ")[0]
        return named if named in BACKENDS else ""

    @property
    def variant(self) -> str:
        return self.address.partition(" ")[0].partition(":")[2]

    @property
    def dtype(self) -> str:
        return self.point.get("dtype", "")

    @property
    def point(self) -> dict[str, str]:
        """The workload by its parts: `rows=3,dtype=bf16` is {"rows": "3", "dtype": "bf16"}."""
        return {name: value for name, sign, value in (p.partition("=") for p in self.workload.split(",")) if sign}

    @property
    def device(self) -> str:
        """The chip that its kernel ran on, by name: the GPU, or the CPU where the evidence says so or there is no
        GPU."""
        chips = ("cpu",) if self.evidence.get("device") == "cpu" else ("gpu", "cpu")
        return next((str(self.provenance[c]) for c in chips if self.provenance.get(c)), "")

    @property
    def detector(self) -> str:
        """What noticed a failure (`selftest`: what must notice it)."""
        return str(self.evidence.get("detector") or "")

    @property
    def failed(self) -> bool:
        return self.status is Status.FAIL

    def to_dict(self) -> dict[str, Any]:
        """The fields as they are: what they hold is shared with the record."""
        return {k: v for k, v in vars(self).items() if v is not None or k not in _SOMETIMES}

    def _repr_html_(self) -> str | None:
        """How a notebook shows it."""
        return _drawn_by[-1](self) if _drawn_by else None

    def named(self, namesakes: Collection[str]) -> str:
        """Its kernel's address, with the file where the address alone stands for several (see `namesakes`)."""
        file = self.source.get("file")
        return f"{self.kernel} ({file})" if file and self.kernel in namesakes else self.kernel


def namesakes(records: Iterable[Record]) -> set[str]:
    """Addresses that stand for kernels of more than one file among these records. The library's own addresses are
    unique: there, another file means that the kernel has moved."""
    files: dict[str, set[str]] = {}
    for record in (r for r in records if "/" in r.kernel):
        file = str(record.source.get("file") or "")
        files.setdefault(record.kernel, set()).add("" if file.startswith(LIBRARY) else file)
    return {kernel for kernel, kernels in files.items() if len(kernels) > 1}


def draw_with(draw: Callable[[Record], str]) -> None:
    """Say how notebooks draw a record: reports are made above this floor."""
    _drawn_by.append(draw)


_drawn_by: list[Callable[[Record], str]] = []
_ABOUT_NO_KERNEL = ("machine", "doctor")
_SOMETIMES = ("median", "interval", "samples", "instructions")


def document(records: Iterable[Record], **about: Any) -> dict[str, Any]:
    """The one machine-readable document a verb prints with `--json`."""
    return {"schema": SCHEMA, **about, "records": [r.to_dict() for r in records]}


def read(path: Path) -> list[Record]:
    """Records from a document written by any version that shares this schema, validated."""
    return parsed(json.loads(path.read_text(encoding="utf-8")))


def parsed(document: Mapping[str, Any]) -> list[Record]:
    """The records of a document."""
    from pydantic import TypeAdapter

    return TypeAdapter(list[Record]).validate_python(document["records"])
