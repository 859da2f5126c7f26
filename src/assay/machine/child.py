"""Runs GPU probes in a process of their own: a probe that kills the process or the device costs one record, not the
run."""

from __future__ import annotations

import json
import traceback
from dataclasses import replace
from functools import cache
from typing import Any, cast

from assay.errors import AssayError
from assay.machine.gpu import Measure, Open, Opened, Outcome
from assay.machine.lab import Lab, ProofFailed
from assay.machine.probes import probes
from assay.worker.fresh import Tick
from assay.worker.messages import plain
from assay.worker.questions import Summary


@cache
def _lab() -> Lab:
    return Lab()


def opened(request: Open, tick: Tick) -> Opened:
    lab = _lab()
    return Opened({"sms": lab.sms, "l2_bytes": lab.l2, "memory_bytes": lab.memory})


def measured(request: Measure, tick: Tick) -> Any:
    """Return the outcome as plain data: probes may return numpy numbers."""
    (probe,) = (p for p in probes() if p.key == request.probe)
    return json.loads(json.dumps(plain(run(_lab(), probe)), default=float))


def run(lab: Lab, probe: Any) -> Outcome:
    """Run one probe and return its outcome."""
    lab.begin()
    try:
        outcome = Outcome(probe.measure(lab, probe))
    except ProofFailed as problem:
        outcome = Outcome(why=f"the proof failed: {problem.what}")
        lab.findings[problem.instance] = problem.finding
    except AssayError as problem:
        outcome = Outcome(why=str(problem))
    except Exception as problem:
        outcome = Outcome(why=f"{type(problem).__name__}: {problem}", traceback=traceback.format_exc())
    started = {artifact.symbol: artifact for artifact in lab.artifacts}.values()
    return replace(
        outcome,
        proof=lab.findings,
        artifacts=[cast(Summary, artifact.summary()) for artifact in started],
        # After a device error the context is lost: this process ends, and the parent starts a new one.
        lost="CUDA" in outcome.why.upper(),
    )
