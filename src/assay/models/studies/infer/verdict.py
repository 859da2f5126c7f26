"""Turns measurements into records with the verdict, the predicted and the measured gain, and their evidence."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay import provenance
from assay.bench.statistics import Estimate, estimate, of_rounds, ratio
from assay.catalog import library
from assay.errors import AssayError
from assay.models.packed.account import Account
from assay.models.packed.compare import Comparison
from assay.models.studies import study
from assay.models.studies.infer.evidence import BY_CHANCE, ENOUGH, Called, InferEvidence, Layer, Row, Training
from assay.models.studies.infer.joined import predicted
from assay.models.studies.infer.planning import Case, Plan
from assay.models.studies.infer.variants import BASELINE, Variant, named
from assay.record import Record, Status

INTERPRETED = "it ran in an interpreter, which checks its results and says nothing about its time"


@dataclass(frozen=True)
class Measured:
    """The measurements of one variant at one batch size."""

    planned: Plan
    variant: Variant
    about: dict[str, Any]
    """Facts that hold for all its batch sizes."""
    answer: dict[str, Any]
    table: list[Row]
    layers: list[Layer]

    def record(self, case: Case, first: bool) -> Record:
        """Return the record of one arm. The first holds the sites and layers, which are measured in the eager arm."""
        arm = self.answer["arms"][case.arm]
        samples = arm.get("samples", {}).get("variant" if self.variant.rules else "torch")
        steady = estimate(samples) if samples else None
        evidence = self.evidence(case, arm, first)
        status, reason = self.verdict(evidence)
        return record(self.planned, case, status, reason, evidence, self.answer["seconds"], steady, samples)

    def evidence(self, case: Case, arm: dict[str, Any], first: bool) -> InferEvidence:
        about, whose = self.about, "variant" if self.variant.rules else "torch"
        shared = ("weights", "model_bytes", "parameter_count", "threads", "tf32", "packed", "boundary", "score")
        data = {k: about[k] for k in shared if k in about}
        data |= {k: arm[k] for k in ("method", "suspect", "failure", "call_bytes") if k in arm}
        data |= {"mode": self.variant.mode, "training": training(self.variant, self.planned)}
        data |= {"swap": self.answer.get("swap", []), "outputs": arm["outputs"].get(whose)}
        data |= {"compile": about["compile"]} if case.arm == "compiled" else {}
        data |= {"unprofiled": self.answer["unprofiled"]} if "unprofiled" in self.answer else {}
        if held := arm.get("call_bytes"):
            data["peak_bytes"] = {who: about["model_bytes"][who] + extra for who, extra in held.items()}
            data["memory_how"] = about["memory_how"]
        if first:
            data |= {"sites": self.table, "layers": self.layers, "profile": self.answer.get("profile", {})}
        return InferEvidence.read(case.about() | data | self._times(case, arm, whose))

    def _times(self, case: Case, arm: dict[str, Any], whose: str) -> dict[str, Any]:
        samples = arm.get("samples", {})
        if not samples:
            return {}
        latency, streamed = (
            {who: estimate(rounds) for who, rounds in taken.items()} for taken in (samples, arm.get("streamed") or {})
        )
        data: dict[str, Any] = {"latency": latency, "throughput": case.batch / (streamed or latency)[whose].median}
        data |= {"streamed": streamed} if streamed else {}
        if busy := self.answer.get("busy", {}).get(case.arm):
            data |= {"device_seconds": busy, "busy": {who: busy[who] / latency[who].median for who in busy}}
        if whose == "variant":
            pairs = zip(samples["torch"], samples["variant"], strict=False)
            data |= {
                "baseline": BASELINE,
                "torch_samples": samples["torch"],
                "speedup": ratio(samples["torch"], samples["variant"]),
                "saving": of_rounds([statistics.median(a) - statistics.median(b) for a, b in pairs if a and b]),
                "predicted": predicted(self.table, latency["torch"].median),
            }
        return data

    def verdict(self, evidence: InferEvidence) -> tuple[Status, str]:
        if why := self.about["failures"].get(evidence.arm, {}):
            if "torch" in why:
                return Status.SKIPPED if evidence.rules else Status.FAIL, f"torch itself: {why['torch']}"
            return Status.FAIL, f"with the kernels: {why['variant']}"
        if failure := evidence.failure:
            return Status.FAIL, f"{failure['what'] or failure['type'] + ': ' + failure['message']}".splitlines()[0]
        outputs = evidence.outputs
        assert outputs is not None
        # Packed weights are meant to change the outputs, so a difference is not an error.
        if off := "" if evidence.packed else outputs.wrong:
            at = f"; the first module that is off: {evidence.suspect}" if evidence.suspect else ""
            at += _sources(evidence, self.table)
            if outputs.elements < ENOUGH and outputs.share < BY_CHANCE and not outputs.note:
                return Status.INCONCLUSIVE, f"{off}{at}; with {outputs.elements} judged, that may be chance"
            return Status.FAIL, off + at
        fell = _fallbacks(evidence)
        error = f"off float64 by {outputs.share:.0%} of the tolerance"
        if self.variant.interpreted:
            return Status.PASS, f"{error}; {INTERPRETED}"
        parts = [_gains(evidence) if evidence.rules else f"{evidence.throughput:,.0f} elements/s"]
        packed = evidence.packed and outputs.compared and _packed(outputs.compared, evidence.packed)
        parts.append(packed or error)
        if evidence.compile and (breaks := evidence.compile[evidence.whose].breaks):
            parts.append(f"{breaks} graph break{'s' if breaks > 1 else ''}")
        return Status.PASS, "; ".join([*parts, *([fell] if fell else [])])


def _sources(evidence: InferEvidence, sites: Sequence[Called]) -> str:
    """Return the kernels of the module that is off, or all that the rules name, with file and line: the record's own
    source is the model's."""
    try:
        kernels = {kernel.name: kernel for _, (kernel, _) in named(evidence.rules, evidence.device)}
    except AssayError:  # a file that was changed meanwhile
        return ""
    there = {site.kernel for site in sites if evidence.suspect and evidence.suspect in (site.path, site.site)}
    chosen = [k for name, k in kernels.items() if k.home and (name in there or not there)]
    return "; ".join(["", *(f"{k.name} is in {provenance.shown(k.home)}:{k.line}" for k in chosen if k.home)])


def _fallbacks(evidence: InferEvidence) -> str:
    fell = [site for site in evidence.swap or () if site.fallbacks]
    if not fell:
        return ""
    return f"{len(fell)} sites fell back: {fell[0].path or '(the model)'}: {next(iter(fell[0].fallbacks))}"


def _packed(compared: Comparison, packed: Account) -> str:
    noise = f"{compared.sqnr:.1f} dB above its noise" if compared.sqnr else "without noise"
    saved = packed.weights.saved
    return f"packed by design: cosine {compared.cosine:.6f}, {noise}; {saved:.1%} of its weights' bytes saved"


def _gains(evidence: InferEvidence) -> str:
    """Return `1.210× torch (1.190 to 1.230); 1.400× expected of the kernels by themselves`, expected by cold times."""
    assert evidence.speedup and evidence.predicted
    low, high = evidence.speedup.interval
    words = f"{evidence.speedup.median:.3f}× torch ({low:.3f} to {high:.3f})"
    if cold := evidence.predicted.cold:
        expected = f"{cold.speedup:.3f}×" if cold.speedup else "more than the whole pass"
        words += f"; {expected} expected of the kernels by themselves"
    return words


def training(variant: Variant, planned: Plan) -> Training:
    """Return the newest recorded training of this model with these kernels on this kind of device."""
    for one in reversed(planned.options.trained):
        if dict(one.swap) == dict(variant.rules) and one.device == planned.subject.device:
            return Training("", one.seconds_per_epoch, one.batch, one.run)
    rules = "".join(f" --swap {k}={v}" for k, v in variant.rules.items())
    return Training(f"not recorded: assay model train {planned.subject.model}{rules}")


def skipped(planned: Plan, case: Case, why: str) -> Record:
    return record(planned, case, Status.SKIPPED, why)


def record(
    planned: Plan,
    case: Case,
    status: Status,
    reason: str,
    evidence: InferEvidence | None = None,
    seconds: float = 0.0,
    steady: Estimate | None = None,
    samples: list[list[float]] | None = None,
) -> Record:
    """Return a record with the hash of every kernel in the model: it is stale once one of them changes."""
    options = planned.options
    kernels = [k for k in library.kernels() if k.file and k.name in case.rules.values()]
    return study.record(
        case.subject.model,
        str(case),
        case.replay(options.swap, str(options.weights or "")),
        status,
        reason,
        evidence or InferEvidence.read(case.about()),
        run=options.run,
        seed=options.effort.seed,
        seconds=seconds,
        steady=steady,
        samples=samples,
        kernels={k.name: provenance.source_of(k.file, k.line)["hash"] for k in kernels},
    )
