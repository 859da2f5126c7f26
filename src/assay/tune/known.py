"""Finds configurations that were measured before, with the same kernel source, workload, device and versions."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from assay import provenance
from assay.catalog.untuned import hash_without_space
from assay.errors import UsageError
from assay.record import Record, Status
from assay.store import open_store
from assay.tune.evidence import TuneEvidence
from assay.tune.planning import Options, TunePlan
from assay.tune.space import Key, key

_VERSIONS = ("packages", "driver", "python", "cores")
"""Parts of a record's provenance, besides the device, that times depend on."""


@dataclass(frozen=True)
class Known:
    """The newest record of each configuration, and the newest choice."""

    records: dict[Key, Record] = field(default_factory=dict)
    choice: Record | None = None


def known(plan: TunePlan, options: Options) -> Known:
    """Return what the store contains; nothing if there is no store or if everything is to be measured again."""
    if options.again or os.environ.get("ASSAY_STORE") == "none":
        return Known()
    try:
        with open_store(create=False) as store:
            stored = list(store.records(verb="tune", kernel=plan.kernel.name, workload=str(plan.workload)))
    except UsageError:
        return Known()
    file = provenance.source_of(plan.kernel.home, plan.kernel.line)["file"]
    source = hash_without_space(plan.kernel)
    found: dict[Key, Record] = {}
    choice = None
    for record in stored:
        if record.source.get("file") != file or not _same(record, source, plan, options):
            continue
        evidence = TuneEvidence.of(record)
        if evidence.choice is not None:
            choice = record
        elif evidence.parameters is not None and record.status in (Status.PASS, Status.FAIL):
            found[key(evidence.parameters)] = record
    return Known(found, choice)


def _same(record: Record, source: str, plan: TunePlan, options: Options) -> bool:
    machine = provenance.machine()
    device = plan.here.device
    evidence = record.evidence
    if evidence.get("source") != source:
        return False
    if evidence.get("device") != device or record.device != machine.get("cpu" if device == "cpu" else "gpu"):
        return False
    if device == "cpu" and options.threads and evidence.get("threads") not in (None, options.threads):
        return False
    return all(record.provenance.get(name) == machine.get(name) for name in _VERSIONS)
