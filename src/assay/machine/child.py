"""Runs GPU probes in a process of its own: a probe that kills the process or the device costs one record, not the run.
Run as a module, by assay.worker.fresh."""

from __future__ import annotations

import json
import traceback
from dataclasses import asdict
from functools import cache
from typing import Any

from assay.errors import AssayError
from assay.machine.lab import Lab, ProofFailed
from assay.machine.probes import probes
from assay.worker.fresh import Tick, serve


@cache
def _lab() -> Lab:
    return Lab()


def answer(question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    lab = _lab()
    if question["do"] == "open":
        facts = {"sms": lab.sms, "l2_bytes": lab.l2, "memory_bytes": lab.memory}
        return {"facts": facts, "target": str(lab.target)}
    (probe,) = (p for p in probes() if p.key == question["probe"])
    outcome: dict[str, Any] = json.loads(json.dumps(run(lab, probe), default=float))  # numpy's numbers among them
    return outcome


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
    answer["proof"] = {name: asdict(finding) for name, finding in lab.findings.items()}
    answer["artifacts"] = [artifact.summary() for artifact in {a.symbol: a for a in lab.artifacts}.values()]
    # After an error of the device the context is lost: end here, and the parent starts a new process.
    if not answer["ok"] and "CUDA" in answer["why"].upper():
        answer["lost"] = True
    return answer


if __name__ == "__main__":
    serve(answer)
