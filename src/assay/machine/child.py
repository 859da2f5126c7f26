"""Runs GPU probes in a process of its own: a probe that kills the process or the device costs one record, not the run.

    python -m assay.machine.child dram.read l2.read …

One JSON line when a probe starts and one when it is done; all other output goes to stderr."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any, TextIO

from assay.errors import AssayError
from assay.machine.lab import Lab, ProofFailed
from assay.machine.probes import probes


def main(keys: list[str]) -> None:
    with os.fdopen(os.dup(1), "w", buffering=1) as out:
        os.dup2(2, 1)
        lab = Lab()
        facts = {"sms": lab.sms, "l2_bytes": lab.l2, "memory_bytes": lab.memory}
        _say(out, {"facts": facts, "target": str(lab.target)})
        known = {probe.key: probe for probe in probes()}
        for key in keys:
            _say(out, {"start": key})
            _say(out, {"done": key, **run(lab, known[key])})


def run(lab: Lab, probe: Any) -> dict[str, Any]:
    """One probe's outcome as plain data."""
    lab.begin()
    answer: dict[str, Any] = {"ok": False}
    try:
        measured = probe.measure(lab, probe)
        answer = {
            "ok": True,
            "value": measured.value,
            "samples": measured.samples,
            "clocks_mhz": measured.clocks_mhz,
            "workload": measured.workload,
            "table": measured.table,
            "more": measured.more,
        }
    except ProofFailed as problem:
        answer["why"] = f"the proof failed: {problem.what}"
        lab.findings[problem.instance] = problem.finding
    except AssayError as problem:
        answer["why"] = str(problem)
    except Exception as problem:
        answer["why"] = f"{type(problem).__name__}: {problem}"
        answer["traceback"] = traceback.format_exc()
    answer["proof"] = {name: finding.to_dict() for name, finding in lab.findings.items()}
    answer["artifacts"] = [artifact.summary() for artifact in {a.symbol: a for a in lab.artifacts}.values()]
    # After an error of the device the context is lost: end here, and the parent starts a new process.
    if not answer["ok"] and "CUDA" in answer["why"].upper():
        answer["lost"] = True
    return answer


def _say(out: TextIO, what: dict[str, Any]) -> None:
    out.write(json.dumps(what, default=float) + "\n")
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
