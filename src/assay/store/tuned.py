"""Stored tuned values: the configuration that `assay tune` chose for a kernel, by the class of a workload's shape.

A choice made on one workload is used for all of its class: the same dtype and attributes, and every axis between the
same powers of two. It is used only for the source that it was made with, and only on the same device."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay import provenance
from assay.catalog.untuned import hash_without_space
from assay.errors import UsageError
from assay.kernel import Kernel
from assay.record import Record, Status
from assay.store import open_store
from assay.workload import Workload


def shape_class(workload: Workload) -> str:
    """Return the class of a workload: `rows=4096..8191,cols=1024..2047,dtype=bf16`."""
    parts = [f"{name}={_between(size)}" for name, size in workload.axes]
    parts += [f"{name}={value}" for name, value in workload.attributes]
    parts += [f"dtype={workload.dtype}"]
    for word, names in (
        ("strided", workload.strided),
        ("scattered", workload.scattered),
        ("without", workload.without),
    ):
        parts += [f"{word}={'+'.join(names)}"] if names else []
    return ",".join(parts)


def _between(size: int) -> str:
    low = 1 << (size.bit_length() - 1) if size else 0
    return f"{low}..{2 * low - 1}" if low > 1 else str(size)


@dataclass(frozen=True)
class TunedValues:
    """The values that a kernel's tunables take on a workload, and where they come from."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Empty if nothing is known; the kernel's own defaults then hold."""
    run: str = ""
    """The run of `assay tune`."""
    workload: str = ""
    """The workload that was tuned."""
    why_not: str = ""
    """Reason why there are no values."""

    @property
    def source(self) -> str:
        """Description for records and tables."""
        return f"tune run {self.run} on {self.workload}" if self.run else self.why_not


class TunedRecords:
    """The tuned choices in the store, read once for each kernel."""

    def __init__(self) -> None:
        self._choices: dict[str, list[Record]] = {}

    def of(self, kernel: Kernel, workload: Workload, device: str = "") -> TunedValues:
        """Return the values for a kernel on a workload. `device`: `cpu` or `cuda`, where the kernel runs."""
        if not kernel.tune:
            return TunedValues(why_not="it has no tunables")
        if kernel.name not in self._choices:
            self._choices[kernel.name] = _choices(kernel)
        wanted, source = shape_class(workload), hash_without_space(kernel)
        chip = str(provenance.machine().get("cpu" if device == "cpu" else "gpu") or "")
        here = [r for r in self._choices[kernel.name] if not device or r.device == chip]
        fitting = [r for r in here if r.evidence["choice"].get("shape_class") == wanted]
        current = [r for r in fitting if r.evidence.get("source") == source]
        if not current:
            return TunedValues(why_not=_why_not(kernel, wanted, bool(here), bool(fitting)))
        best = next((r for r in reversed(current) if r.workload == str(workload)), current[-1])
        return TunedValues(dict(best.evidence["choice"]["winner"]), best.run, best.workload)


def _why_not(kernel: Kernel, wanted: str, any_here: bool, other_source: bool) -> str:
    if other_source:
        return "its source changed since it was tuned"
    if any_here:
        return f"it was not tuned for {wanted}"
    return f"it was not tuned on this device: `assay tune {kernel}`"


def _choices(kernel: Kernel) -> list[Record]:
    """Return the records of choices for a kernel, the oldest first; none if there is no store."""
    if os.environ.get("ASSAY_STORE") == "none":
        return []
    try:
        with open_store(create=False) as store:
            passed = store.records(verb="tune", kernel=kernel.name, status=Status.PASS)
            return [r for r in passed if isinstance((r.evidence.get("choice") or {}).get("winner"), dict)]
    except UsageError:
        return []
