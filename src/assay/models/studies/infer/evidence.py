"""From what was measured to a record: the verdict, the gain predicted and the gain seen, and what they stand on."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from assay import provenance
from assay.bench.statistics import Estimate, estimate, of_rounds, ratio
from assay.catalog import library
from assay.models.studies.agreement import wrong
from assay.models.studies.infer.case import BASELINE, Case
from assay.models.studies.infer.joined import Row, predicted
from assay.models.studies.infer.options import Trained
from assay.models.studies.infer.outputs import BY_CHANCE, ENOUGH
from assay.models.studies.infer.planning import Plan
from assay.models.studies.infer.variants import Variant
from assay.models.subject.registry import entry
from assay.record import Record, Status

INTERPRETED = "its results are an interpreter's: right or wrong is all they say, and its times say nothing"


@dataclass(frozen=True)
class Measured:
    """One variant at one batch size."""

    variant: Variant
    about: dict[str, Any]
    """What holds for all its batches."""
    found: dict[str, Any]
    table: list[Row]
    first: bool
    """Is this the first arm? Its record holds the sites and layers, which are those of the eager form."""

    def record(self, planned: Plan, case: Case, layers: list[Row]) -> Record:
        told = self.found["arms"][case.arm]
        whose = "variant" if self.variant.rules else "torch"
        evidence = self._evidence(planned, case, told, whose)
        evidence |= {"sites": self.table, "layers": layers, "profile": self._profile()} if self.first else {}
        samples = told.get("samples", {})
        mine = estimate(samples[whose]) if samples else None
        if mine is not None:
            evidence |= self._times(case, samples, whose, mine)
        status, reason = self._verdict(case, told, evidence, whose)
        return record(planned, case, status, reason, evidence, self.found.get("seconds", 0.0), mine, samples.get(whose))

    def _evidence(self, planned: Plan, case: Case, told: dict[str, Any], whose: str) -> dict[str, Any]:
        about = self.about
        found: dict[str, Any] = {
            "mode": self.variant.mode,
            "weights": about["weights"],
            "model_bytes": about["model_bytes"],
            "parameter_count": about["parameter_count"],
            "threads": about["threads"],
            "tf32": about["tf32"],
            "swap": [_short(s) for s in self.found.get("swap", [])],
            "outputs": told["outputs"].get(whose),
            "training": training(self.variant, planned),
        }
        found |= {k: told[k] for k in ("method", "suspect", "failure") if k in told}
        found |= {k: about[k] for k in ("boundary", "score") if k in about}
        if held := told.get("call_bytes"):
            found["call_bytes"] = held
            found["peak_bytes"] = {who: about["model_bytes"][who] + extra for who, extra in held.items()}
            found["memory_how"] = about["memory_how"]
        if about["packed"]:
            found["packed"] = about["packed"]
        if case.arm == "compiled":
            found["compile"] = about["compile"]
        if "unprofiled" in self.found:
            found["unprofiled"] = self.found["unprofiled"]
        return found

    def _times(self, case: Case, samples: dict[str, Any], whose: str, mine: Estimate) -> dict[str, Any]:
        streamed = self.found["arms"][case.arm].get("streamed")
        passing = estimate(streamed[whose]).median if streamed else mine.median
        found: dict[str, Any] = {"throughput": case.batch / passing}
        if streamed:
            found["streamed"] = {who: estimate(rounds).to_dict() for who, rounds in streamed.items()}
        steady = {who: estimate(rounds) for who, rounds in samples.items()}
        found["latency"] = {who: e.to_dict() for who, e in steady.items()}
        busy = self.found.get("busy", {}).get(case.arm)
        if busy:
            found["device_seconds"] = busy
            found["busy"] = {who: busy[who] / steady[who].median for who in busy}
        if whose == "variant":
            pairs = zip(samples["torch"], samples["variant"], strict=False)
            saved = of_rounds([statistics.median(a) - statistics.median(b) for a, b in pairs if a and b])
            found |= {
                "baseline": BASELINE,
                "torch_samples": samples["torch"],
                "speedup": ratio(samples["torch"], samples["variant"]).to_dict(),
                "saving": saved.to_dict(),
                "predicted": predicted(self.table, steady["torch"].median),
            }
        return found

    def _profile(self) -> dict[str, Any]:
        """Of the passes that sites and layers come from: how much of them is accounted for."""
        kept = ("total", "unattributed", "between", "wall")
        return {who: {k: t[k] for k in kept if k in t} for who, t in self.found.get("profile", {}).items()}

    def _verdict(self, case: Case, told: dict[str, Any], evidence: dict[str, Any], whose: str) -> tuple[Status, str]:
        if why := self.about["failures"].get(case.arm, {}):
            if "torch" in why:
                return Status.SKIPPED if self.variant.rules else Status.FAIL, f"torch itself: {why['torch']}"
            return Status.FAIL, f"with the kernels: {why['variant']}"
        if "failure" in told:
            failure = told["failure"]
            return Status.FAIL, f"{failure['what'] or failure['type'] + ': ' + failure['message']}".splitlines()[0]
        outputs = told["outputs"][whose]
        lossy = self._lossy()
        if off := wrong(outputs, "torch", "variant") if not lossy else "":
            at = f"; the first module that is off: {told['suspect']}" if told.get("suspect") else ""
            if outputs["elements"] < ENOUGH and outputs["share"] < BY_CHANCE and not outputs["note"]:
                return Status.INCONCLUSIVE, f"{off}{at}; with {outputs['elements']} judged, that may be chance"
            return Status.FAIL, off + at
        if self.variant.rules and not self.table:
            return Status.SKIPPED, f"no site ran its kernel: {self._fallbacks() or 'none was called'}"
        if self.variant.interpreted:
            return Status.PASS, f"off float64 by {outputs['share']:.0%} of the limit; {INTERPRETED}"
        parts = [_gains(evidence)] if self.variant.rules else [f"{evidence['throughput']:,.0f} elements/s"]
        if lossy:
            parts.append(_packed(outputs["compared"], self.about["packed"]))
        else:
            parts.append(f"off float64 by {outputs['share']:.0%} of the limit")
        if case.arm == "compiled" and (breaks := self.about["compile"][whose]["breaks"]):
            parts.append(f"{breaks} graph break{'s' if breaks > 1 else ''}")
        if fell := self._fallbacks():
            parts.append(fell)
        return Status.PASS, "; ".join(parts)

    def _lossy(self) -> bool:
        """Were weights packed? Then it is not wrong to differ."""
        return bool(self.about.get("packed"))

    def _fallbacks(self) -> str:
        fell = [s for s in self.found.get("swap", []) if s["fallbacks"]]
        if not fell:
            return ""
        return f"{len(fell)} sites fell back: {fell[0]['path'] or '(the model)'}: {next(iter(fell[0]['fallbacks']))}"


def _packed(compared: dict[str, Any], packed: dict[str, Any]) -> str:
    noise = f"{compared['sqnr']:.1f} dB above its noise" if compared["sqnr"] else "without noise"
    saved = packed["weights"]["saved"]
    return f"packed by design: cosine {compared['cosine']:.6f}, {noise}; {saved:.1%} of its weights' bytes saved"


def _gains(evidence: dict[str, Any]) -> str:
    """`1.210× torch (1.190 to 1.230); 1.400× promised alone`: by the cold times."""
    seen = evidence["speedup"]
    low, high = seen["interval"]
    words = f"{seen['median']:.3f}× torch ({low:.3f} to {high:.3f})"
    cold = evidence["predicted"].get("cold")
    if cold:
        words += f"; {cold['speedup']:.3f}× promised alone" if cold["speedup"] else "; alone it promises more than all"
    return words


def _short(site: dict[str, Any]) -> dict[str, Any]:
    return {k: site[k] for k in ("path", "op", "form", "state", "why", "kernel", "calls", "traced", "fallbacks")}


def training(variant: Variant, planned: Plan) -> dict[str, Any]:
    """The newest recorded training of this model with these kernels on this kind of device."""
    found: Trained | None = None
    for one in planned.options.trained:
        if dict(one.swap) == dict(variant.rules) and one.device == planned.subject.device:
            found = one
    if found is None:
        rules = "".join(f" --swap {k}={v}" for k, v in variant.rules.items())
        return {"why": f"not recorded: assay model train {planned.subject.model}{rules}"}
    return {"seconds_per_epoch": found.seconds_per_epoch, "batch": found.batch, "run": found.run}


def skipped(planned: Plan, case: Case, why: str) -> Record:
    return record(planned, case, Status.SKIPPED, why, {})


def record(
    planned: Plan,
    case: Case,
    status: Status,
    reason: str,
    evidence: dict[str, Any],
    seconds: float = 0.0,
    steady: Estimate | None = None,
    samples: list[list[float]] | None = None,
) -> Record:
    subject, options = planned.subject, planned.options
    about = {
        "study": "infer",
        "variant": case.variant,
        "rules": dict(case.rules),
        "arm": case.arm,
        "batch": case.batch,
        "dtype": subject.dtype,
        "device": subject.device,
    }
    given = str(options.weights) if options.weights else ""
    return Record(
        "model",
        subject.model,
        str(case),
        status,
        reason,
        options.run,
        about | evidence,
        case.replay(options.swap, given),
        source=_source(case),
        provenance=provenance.provenance(options.effort.seed),
        seconds=seconds,
        median=steady.median if steady else None,
        interval=steady.interval if steady else None,
        samples=samples,
    )


def _source(case: Case) -> dict[str, Any]:
    """The model's file, and the hash of every kernel in it: a record whose kernel changed since is stale."""
    hashes = {}
    for name in case.rules.values():
        kernel = next((k for k in library.kernels() if k.name == name), None)
        if kernel is not None and kernel.file is not None:
            hashes[name] = provenance.source_of(kernel.file, kernel.line)["hash"]
    return provenance.source_of(entry(case.subject.model).file) | {"kernels": hashes}
