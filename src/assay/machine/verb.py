"""Selects probes, yields their records as they are ready, and last yields and keeps the model."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from assay import host, provenance
from assay.errors import AssayError, UsageError
from assay.machine import cpu, gpu
from assay.machine.build import FOLDER
from assay.machine.cpu import stream
from assay.machine.cpu.cores import Missing
from assay.machine.evidence import MachineEvidence, Proven
from assay.machine.lab import build_target
from assay.machine.model import MEASURED, Figure, Model, kept_file, published, this_device
from assay.machine.probe import Probe
from assay.machine.probes import probes
from assay.record import Record, Status, document
from assay.settings import settings_of
from assay.target import Target, target
from assay.watching import watched


@dataclass(frozen=True)
class Options:
    """The options of `machine`."""

    only: str = ""
    """One family of probes, or one probe; the model is then shown but not kept."""
    device: str = ""
    """`cuda` or `cpu`; if empty, the GPU if there is one, else the CPU."""
    prove: str = ""
    """A target: build the GPU's probes for it and prove their machine code without running anything."""
    run: str = field(default_factory=provenance.new_run)


def machine(options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Measure this device: the GPU, or the CPU if there is none. Yield one record per probe as it finishes, the model
    last. A full run is kept as the device's model, unless something failed and a model is already kept. `only` measures
    one family; `prove="sm_90a"` proves without running."""
    chosen = options or settings_of(Options, settings)
    if chosen.prove:
        yield from _proofs(chosen)
        return
    kind = device_kind(chosen)
    names = [*(f"machine/{probe.key}" for probe in chosen_probes(kind, chosen.only)), "machine"]
    yield from watched("machine", _measure(chosen, kind), names)


def _measure(chosen: Options, kind: str) -> Iterator[Record]:
    begin = time.perf_counter()
    records, facts = [], dict[str, float]()
    for record in _gpu(chosen, facts) if kind == "cuda" else _cpu(chosen, facts):
        records.append(record)
        yield record
    last = _model(records, facts, kind, chosen, time.perf_counter() - begin)
    model = MachineEvidence.of(last).model
    assert model
    worth = last.status is Status.PASS or not kept_file(model.device).exists()
    if not chosen.only and model.figures and worth:
        _keep([*records, last], model, chosen)
    yield last


def device_kind(options: Options) -> str:
    if options.device not in ("", "cuda", "cpu"):
        raise UsageError(f"no device called '{options.device}'", fix="cuda or cpu")
    if options.device == "cuda" and not host.runs_on_gpu():
        raise UsageError("there is no GPU here", fix="assay machine --device cpu, or --prove sm_90a")
    return options.device or ("cuda" if host.runs_on_gpu() else "cpu")


def families(kind: str) -> list[str]:
    return list(dict.fromkeys(p.family for p in (probes() if kind == "cuda" else cpu.PROBES)))


def chosen_probes(kind: str, only: str) -> list[Any]:
    selected: list[Any] = [p for p in (probes() if kind == "cuda" else cpu.PROBES) if only in ("", p.family, p.key)]
    if not selected:
        raise UsageError(f"no family of probes called '{only}'", fix=f"there are: {', '.join(families(kind))}")
    return selected


def _gpu(options: Options, facts: dict[str, float]) -> Iterator[Record]:
    device = host.gpu()
    assert device is not None
    goal = build_target(device.target)
    known = {p.key: p for p in chosen_probes("cuda", options.only)}
    for probe in known.values():
        if not probe.fits(goal):
            yield _record(probe, options, Status.SKIPPED, _lacks(probe, goal))
    stated = published(device.name)
    begin = time.perf_counter()
    for message in gpu.outcomes([k for k, p in known.items() if p.fits(goal)]):
        if isinstance(message, gpu.Opened):
            facts.update(message.facts)
            continue
        seconds, begin = time.perf_counter() - begin, time.perf_counter()
        key, outcome = message
        yield _measured(known[key], outcome, stated, options, seconds)


def _measured(probe: Probe, outcome: gpu.Outcome, stated: Model | None, options: Options, seconds: float) -> Record:
    about: dict[str, Any] = {"artifacts": [dict(summary) for summary in outcome.artifacts], "seconds": seconds}
    proof = Proven(str(next(iter(probe.instances.values()))), outcome.proof)
    measured = outcome.measured
    if measured is None:
        evidence = MachineEvidence(proof=proof, traceback=outcome.traceback)
        return _record(probe, options, Status.FAIL, outcome.why, evidence, **about)
    clocks = sorted(measured.clocks_mhz)
    known = stated.figures.get(probe.key) if stated else None
    figure = Figure(
        measured.value,
        probe.unit,
        min(measured.samples),
        max(measured.samples),
        clocks[len(clocks) // 2] if clocks else None,
        known.published if known else None,
        known.where if known else "",
    )
    evidence = MachineEvidence(
        figures={probe.key: figure},
        proof=proof,
        samples=measured.samples,
        table=measured.table or None,
        **measured.more,
    )
    reason = f"measured over {len(measured.samples)} samples; its machine code is what it claims"
    return _record(probe, options, Status.PASS, reason, evidence, measured.workload, **about)


def _cpu(options: Options, facts: dict[str, float]) -> Iterator[Record]:
    facts.update(cpu.facts())
    for probe in chosen_probes("cpu", options.only):
        begin = time.perf_counter()
        try:
            measured = probe.measure()
        except Missing as problem:
            yield _record(probe, options, Status.SKIPPED, str(problem))
            continue
        except Exception as problem:
            why = str(problem) if isinstance(problem, AssayError) else f"{type(problem).__name__}: {problem}"
            yield _record(probe, options, Status.FAIL, why, seconds=time.perf_counter() - begin)
            continue
        evidence = MachineEvidence(
            figures={probe.key: Figure(measured.value, probe.unit, min(measured.samples), max(measured.samples))},
            samples=measured.samples,
            table=measured.table or None,
            **measured.more,
        )
        reason = f"measured over {len(measured.samples)} samples"
        seconds = time.perf_counter() - begin
        yield _record(probe, options, Status.PASS, reason, evidence, measured.workload, seconds=seconds)
    stream.arrays.cache_clear()  # gigabytes


def _proofs(options: Options) -> Iterator[Record]:
    """Build every GPU probe for a target and check its machine code, on any machine."""
    goal = target(options.prove)
    for probe in chosen_probes("cuda", options.only):
        if not probe.fits(goal):
            yield _record(probe, options, Status.SKIPPED, _lacks(probe, goal))
            continue
        begin = time.perf_counter()
        findings = {name: probe.prove(name, goal) for name in probe.instances}
        evidence = MachineEvidence(proof=Proven(str(next(iter(probe.instances.values()))), findings))
        broken = [f"{name}: {finding.says}" for name, finding in findings.items() if not finding.held]
        status = Status.FAIL if broken else Status.COMPILED
        reason = broken[0] if broken else f"built for {goal} and proven, not run"
        artifacts = [probe.build(name, goal).summary() for name in probe.instances]
        yield _record(
            probe, options, status, reason, evidence, artifacts=artifacts, seconds=time.perf_counter() - begin
        )


def _lacks(probe: Probe, goal: Target) -> str:
    return f"{goal} does not have it: {probe.lacks or 'it is older'}"


def _record(
    probe: Any,
    options: Options,
    status: Status,
    reason: str,
    evidence: MachineEvidence | None = None,
    workload: str = "",
    **more: Any,
) -> Record:
    return Record(
        verb="machine",
        kernel=f"machine/{probe.key}",
        workload=workload,
        status=status,
        reason=reason,
        run=options.run,
        evidence=(evidence or MachineEvidence()).to_dict(),
        replay=f"assay machine --only {probe.key}",
        provenance=provenance.provenance(0),
        source=_source(probe),
        **more,
    )


def _source(probe: Any) -> dict[str, Any]:
    return provenance.source_of(FOLDER / probe.source) if isinstance(probe, Probe) else {}


def _model(records: list[Record], facts: dict[str, float], kind: str, options: Options, seconds: float) -> Record:
    figures = {key: f for r in records for key, f in (MachineEvidence.of(r).figures or {}).items()}
    made = provenance.provenance(0)
    model = Model(this_device(kind), MEASURED, options.run, made["time"], figures, facts)
    failed = [r.kernel.removeprefix("machine/") for r in records if r.failed]
    reason = f"{len(figures)} figures" + (f"; without {', '.join(failed)}, which failed" if failed else "")
    return Record(
        verb="machine",
        kernel="machine",
        workload="",
        status=Status.FAIL if failed else Status.PASS,
        reason=reason,
        run=options.run,
        evidence=MachineEvidence(model=model).to_dict(),
        replay="assay machine",
        provenance=made,
        seconds=seconds,
    )


def _keep(records: list[Record], model: Model, options: Options) -> None:
    """Write the file atomically, since another process may be reading it."""
    file = kept_file(model.device)
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document(records, verb="machine", run=options.run), indent=1, default=str)
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text + "\n")
    temporary.replace(file)
