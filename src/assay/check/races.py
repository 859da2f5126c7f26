"""Runs compute-sanitizer's racecheck if a result is right in one call and wrong in another, which may be a race."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay import sanitize
from assay.check.evidence import CheckEvidence, Racecheck
from assay.errors import AssayError
from assay.kernel import Kernel
from assay.op import Op
from assay.record import Record
from assay.workload import Workload


def looked_for(record: Record, kernel: Kernel, op: Op, parameters: Mapping[str, Any]) -> Record:
    """`record`, with racecheck's report if the result is unstable and racecheck can run here."""
    if record.detector != "unstable" or sanitize.why_not(kernel)[0]:
        return record
    try:
        report = sanitize.run(kernel, Workload.of(op, record.workload), "racecheck", parameters=dict(parameters))
    except AssayError as error:
        report = sanitize.Report("racecheck", (), str(error))
    racecheck = Racecheck(report.clean, [str(p) for p in report.problems], report.trouble)
    reason = f"{record.reason}; racecheck: {report.problems[0]}" if report.problems else record.reason
    return replace(record, reason=reason, evidence=replace(CheckEvidence.of(record), racecheck=racecheck).to_dict())
