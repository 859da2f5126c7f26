"""One mutant on its way through `check`: what it was tried on, and what became of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay import provenance
from assay.check.exploring import Exploration
from assay.check.job import Job, Settings
from assay.kernel import Kernel
from assay.op import Op
from assay.record import Record, Status
from assay.selftest.mutants.evidence import STATUS, MutantEvidence, Outcome
from assay.selftest.mutants.mutant import Mutant
from assay.worker import Worker

_NO_KERNEL = (
    "BuildError",
    "SyntaxError",
    "ImportError",
    "CompilationError",
    "UnsupportedLanguageConstruct",
    "TypingError",
    "LoweringError",
    "UnsupportedError",
    "UnsupportedBytecodeError",
    "NvvmError",
)
"""Exceptions with which a toolchain refuses a source."""


@dataclass(frozen=True)
class Options:
    """What a user may set."""

    limit: int | None = None
    """Mutants per kernel, spread evenly over all it has."""
    sample: int | None = None
    """Mutants in all, drawn with `seed`."""
    seed: int = 0
    part: tuple[int, int] = (1, 1)
    """Of how many slices which, from 1: slices together are the whole."""
    operators: tuple[str, ...] = ()
    """Only these."""
    jobs: int | None = None
    workloads: int = 2000
    """On which the outputs of a mutant that passed are compared with its kernel's."""
    seconds: float = 240.0
    """For that comparison, per mutant."""
    keep: Path | None = None
    """Leave the mutants' files in this folder."""
    run: str = field(default_factory=provenance.new_run)


def tried_dtypes(kernel: Kernel, op: Op) -> tuple[str, ...]:
    """fp32, or the first that the kernel has, and one of 16 bits."""
    possible = [d for d in op.dtypes if not kernel.dtypes or d in kernel.dtypes]
    first = "fp32" if "fp32" in possible else possible[0]
    halves = [d for d in ("bf16", "fp16") if d in possible and d != first]
    return (first, *halves[:1])


@dataclass
class Trial:
    """A mutant on its way through `check`."""

    mutant: Mutant
    kernel: Kernel
    op: Op
    dtypes: tuple[str, ...]
    checked: list[Record] = field(default_factory=list)
    ended: bool = False
    """A dtype has failed: the others need not be tried."""

    def lost(self, checked: Record) -> bool:
        return not checked.evidence.get("not_needed") and _caught(checked)

    def judged(self, checked: Record, options: Options) -> Record:
        self.ended = True
        detector = checked.evidence.get("detector", "")
        finding = checked.reason.removeprefix(f"{detector}: ")
        # One that is refused only in its second dtype has run in the first.
        outcome = Outcome.STILLBORN if len(self.checked) == 1 and _is_stillborn(checked) else Outcome.KILLED
        words = finding.splitlines()[0] if finding else ""
        said = f"killed by {detector}: {words}" if outcome is Outcome.KILLED else f"no kernel: {words}"
        found_at = checked.evidence.get("found_at", checked.workload)
        return self.record(outcome, said, options, detector=detector, finding=finding, found_at=found_at)

    def record(self, outcome: Outcome, reason: str, options: Options, **more: Any) -> Record:
        mutant = self.mutant
        known = {
            "finding": "; ".join(r.reason for r in self.checked),
            "workloads": sum(r.evidence.get("workloads", 0) for r in self.checked),
            "seconds": sum(r.seconds for r in self.checked),
        }
        evidence = MutantEvidence(
            mutant.kernel.name,
            mutant.kernel.address.backend,
            mutant.operator,
            provenance.shown(mutant.file),
            mutant.line,
            mutant.column,
            mutant.before,
            mutant.after,
            outcome,
            dtypes=self.dtypes,
            **(known | more),
        )
        replay = f"assay selftest mutants {shlex.quote(mutant.name)}"
        return record_of(mutant.name, evidence, reason, options, replay, mutant.kernel.file, self.dtypes)


def record_of(
    name: str,
    evidence: MutantEvidence,
    reason: str,
    options: Options,
    replay: str,
    file: Path | None,
    dtypes: tuple[str, ...] = (),
) -> Record:
    source = provenance.source_of(file, evidence.line)
    return Record(
        "selftest",
        name,
        evidence.found_at or f"dtype={'+'.join(dtypes)}",
        STATUS[evidence.outcome],
        reason,
        options.run,
        evidence.to_dict(),
        replay,
        source,
        [],
        provenance.provenance(options.seed),
        evidence.seconds,
    )


def _caught(checked: Record) -> bool:
    """Did `check` fail it? One that never answers counts, whatever its status is called."""
    return checked.status is Status.FAIL or checked.evidence.get("detector") == "timeout"


def _is_stillborn(checked: Record) -> bool:
    """Was there no kernel to run? Then the toolchain refused the source: an exception of its compiler, or one raised
    while Triton's language builds an operation, which its interpreter runs into as its compiler would."""
    detector = checked.evidence.get("detector")
    if detector == "build":
        return True
    if detector != "exception":
        return False
    kind = checked.reason.removeprefix("exception: ").partition(":")[0]
    if kind in _NO_KERNEL:
        return True
    for chained in str(checked.evidence.get("trace", "")).split("\nThe above exception was"):
        places = [line for line in chained.splitlines() if line.startswith('  File "')]
        if places and "triton/language/" in places[-1]:
            return True
    return False


@dataclass(frozen=True)
class MutantJob(Job):
    """A mutant in one dtype. Whether it fails is all that is asked: what failed is not made small, and once one dtype
    has failed the others are left out."""

    trial: Trial | None = None

    def run(self, settings: Settings, worker: Worker | None) -> tuple[Record, Worker | None]:
        assert self.trial is not None
        if not self.trial.ended:
            found, worker = super().run(settings, worker)
            object.__setattr__(self.trial, "ended", _caught(found))
            return found, worker
        return Record(
            "check",
            self.kernel.name,
            f"dtype={self.dtype}",
            Status.SKIPPED,
            "another dtype failed",
            settings.run,
            {"not_needed": True},
            source=provenance.source_of(self.kernel.file, self.kernel.line),
        ), worker

    def _failed(self, exploring: Exploration, record: Callable[..., Record]) -> Record:
        assert exploring.seen.failure is not None
        return Job._failed(replace(self, workload=exploring.seen.failure[0]), exploring, record)
