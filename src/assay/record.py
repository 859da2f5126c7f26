"""The outcome of one verb on one kernel, workload and machine. Records are data: printed, stored, compared, drawn."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from assay.kernel import BACKENDS

_PACKAGE = "assay/"
"""Prefix of the file of a record's source if it is one of Assay's."""
LIBRARY = f"{_PACKAGE}library/"
"""Prefix of the file of a record's kernel if it is one of the library's."""
SCHEMA = 2
"""Raised whenever a field changes its meaning or is removed. Records of schema 1 are read unchanged: their fields have
the same meaning, and fields of schema 2 that they lack are `null` or empty."""


VERBS = (
    "doctor",
    "list",
    "check",
    "bench",
    "inspect",
    "tune",
    "compare",
    "machine",
    "model",
    "compress",
    "search",
    "selftest",
)
"""The verbs that records name."""


class Status(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    COMPILED = "compiled"
    """Built, but could not run here."""
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
    """The basis of the verdict; its shape depends on the verb (docs/records.md)."""
    replay: str = ""
    """The command that reproduces this record."""
    source: dict[str, Any] = field(default_factory=dict)
    """File, line and hash of the kernel's source and, for a user's file, the commit of its repository."""
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    """What was built: name, target, hash of the machine code's .text, resources."""
    provenance: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    median: float | None = None
    """bench: seconds of one call, cold."""
    interval: tuple[float, float] | None = None
    """The 95 % interval of that median over rounds, in seconds."""
    samples: list[list[float]] | None = None
    """All samples behind the median, by round."""
    instructions: list[dict[str, Any]] | None = None
    """inspect: the machine code, one row for each instruction (assay.inspect.row)."""
    schema: int = SCHEMA

    @property
    def address(self) -> str:
        """The address of the record's kernel (for selftest, from its evidence); machine and doctor have none."""
        if self.verb in _ABOUT_NO_KERNEL:
            return ""
        return str(self.evidence.get("kernel", "")) if self.verb == "selftest" else self.kernel

    @property
    def op(self) -> str:
        return self.address.partition("/")[0] if "/" in self.address else ""

    @property
    def backend(self) -> str:
        """The language; empty if the address names none."""
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
        """The parts of the workload by name: `rows=3,dtype=bf16` is {"rows": "3", "dtype": "bf16"}."""
        return {name: value for name, sign, value in (p.partition("=") for p in self.workload.split(",")) if sign}

    @property
    def device(self) -> str:
        """Name of the chip that the kernel ran on: the GPU, or the CPU if the evidence says so or there is no GPU."""
        chips = ("cpu",) if self.evidence.get("device") == "cpu" else ("gpu", "cpu")
        return next((str(self.provenance[c]) for c in chips if self.provenance.get(c)), "")

    @property
    def commit(self) -> str:
        """The commit of the repository that the kernel's source is in: the user's or, for the library, Assay's. It ends
        in a + if something was changed since. Empty if unknown, as in records of users' files of older versions."""
        file = str(self.source.get("file") or "")
        return str(self.source.get("commit") or "") if file and not file.startswith(_PACKAGE) else self.assay_commit

    @property
    def assay_commit(self) -> str:
        """Assay's own commit; empty if Assay was installed from a package."""
        return str(self.provenance.get("assay_commit") or self.provenance.get("commit") or "")

    @property
    def detector(self) -> str:
        """The detector that found a failure (`selftest`: the one that must find it)."""
        return str(self.evidence.get("detector") or "")

    @property
    def failed(self) -> bool:
        return self.status is Status.FAIL

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary. Their values are not copied."""
        return {k: v for k, v in vars(self).items() if v is not None or k not in _SOMETIMES}

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows."""
        return _drawn_by[-1](self) if _drawn_by else None

    def named(self, namesakes: Collection[str]) -> str:
        """Return the kernel's address, with the file if kernels of several files have that address."""
        file = self.source.get("file")
        return f"{self.kernel} ({file})" if file and self.kernel in namesakes else self.kernel


def namesakes(records: Iterable[Record]) -> set[str]:
    """Return the addresses that kernels of more than one file have among these records. The library's own addresses are
    unique: there, another file means that the kernel has moved."""
    files: dict[str, set[str]] = {}
    for record in (r for r in records if "/" in r.kernel):
        file = str(record.source.get("file") or "")
        files.setdefault(record.kernel, set()).add("" if file.startswith(LIBRARY) else file)
    return {kernel for kernel, kernels in files.items() if len(kernels) > 1}


def draw_with(draw: Callable[[Record], str]) -> None:
    """Set how notebooks draw a record. Reports import this module, so it cannot import them."""
    _drawn_by.append(draw)


_drawn_by: list[Callable[[Record], str]] = []
_ABOUT_NO_KERNEL = ("machine", "doctor")
_SOMETIMES = ("median", "interval", "samples", "instructions")


def document(records: Iterable[Record], **about: Any) -> dict[str, Any]:
    """Return the machine-readable document that a verb prints with `--json`."""
    return {"schema": SCHEMA, **about, "records": [r.to_dict() for r in records]}


def read(path: Path) -> list[Record]:
    """Return the validated records of a document written by any version that shares this schema."""
    return parsed(json.loads(path.read_text(encoding="utf-8")))


def parsed(document: Mapping[str, Any]) -> list[Record]:
    """Return the validated records of a document."""
    from pydantic import TypeAdapter

    return TypeAdapter(list[Record]).validate_python(document["records"])
