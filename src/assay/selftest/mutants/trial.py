"""One mutant on its way through `check`: what it was tried on, and what became of it."""

import shlex
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay import provenance
from assay.check.evidence import CheckEvidence
from assay.check.exploring import Exploration
from assay.check.job import Job, Settings
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.op import Op
from assay.record import Record
from assay.selftest.mutants.equivalent import Prover
from assay.selftest.mutants.evidence import STATUS, MutantEvidence, Outcome
from assay.selftest.mutants.mutant import Mutant
from assay.worker import Pool, Worker

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


@dataclass(frozen=True)
class Quick(Job):
    """Whether it fails is all that is asked: what failed is not made small."""

    def _failed(self, exploring: Exploration, record: Callable[..., Record]) -> Record:
        assert exploring.seen.failure is not None
        return Job._failed(replace(self, workload=exploring.seen.failure[0]), exploring, record)


@dataclass(frozen=True)
class MutantJob(Job):
    """A mutant, from its check in one dtype after the other, the first that fails ending it, to the proof that it is
    equivalent. One process does it all, so that mutants do not wait for each other."""

    mutant: Mutant = field(kw_only=True)
    dtypes: tuple[str, ...] = field(kw_only=True)
    options: Options = field(kw_only=True)

    def run(self, settings: Settings, worker: Worker | None) -> tuple[Record, Worker | None]:
        checked: list[Record] = []
        for number in self.dtypes:
            found, worker = Quick(self.kernel, self.op, dtype(number)).run(settings, worker)
            checked.append(found)
            if caught(found):
                return self.judged(found, checked), worker
        if worker:  # a proof has workers of its own
            worker.close()
        proof = _prover(settings.pool, self.options, settings.stop).prove(self.mutant, self.kernel, self.op)
        outcome = Outcome.EQUIVALENT if proof.holds else Outcome.SURVIVED
        proven = {"proof": proof.how, "compared": proof.compared, "differs_at": proof.differs_at}
        return self.record(outcome, f"{outcome}: {proof.how}", checked, **proven), None

    def judged(self, failed: Record, checked: list[Record]) -> Record:
        """Of one that `check` has failed: killed, or no kernel at all."""
        detector = failed.detector
        finding = failed.reason.removeprefix(f"{detector}: ")
        # One that is refused only in its second dtype has run in the first.
        outcome = Outcome.STILLBORN if len(checked) == 1 and _is_stillborn(failed) else Outcome.KILLED
        words = finding.splitlines()[0] if finding else ""
        said = f"killed by {detector}: {words}" if outcome is Outcome.KILLED else f"no kernel: {words}"
        found_at = CheckEvidence.of(failed).found_at or failed.workload
        return self.record(outcome, said, checked, detector=detector, finding=finding, found_at=found_at)

    def record(self, outcome: Outcome, reason: str, checked: list[Record], **more: Any) -> Record:
        mutant = self.mutant
        known: dict[str, Any] = {
            "finding": "; ".join(r.reason for r in checked),
            "workloads": sum(CheckEvidence.of(r).workloads or 0 for r in checked),
            "seconds": sum(r.seconds for r in checked),
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
        return record_of(mutant.name, evidence, reason, self.options, replay, mutant.kernel.file, self.dtypes)


_provers: dict[Pool, Prover] = {}
_making = threading.Lock()


def _prover(pool: Pool, options: Options, stop: threading.Event) -> Prover:
    """One for each process that judges: what it learns about a kernel serves for all its mutants."""
    with _making:
        if pool not in _provers:
            _provers.clear()
            _provers[pool] = Prover(pool, options.workloads, options.seconds, stop)
        return _provers[pool]


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


def caught(checked: Record) -> bool:
    """Did `check` fail it? One that never answers counts, whatever its status is called."""
    return checked.failed or checked.detector == "timeout"


def _is_stillborn(checked: Record) -> bool:
    """Was there no kernel to run? Then the toolchain refused the source: an exception of its compiler, or one raised
    while Triton's language builds an operation, which its interpreter runs into as its compiler would."""
    detector = checked.detector
    if detector == "build":
        return True
    if detector != "exception":
        return False
    kind = checked.reason.removeprefix("exception: ").partition(":")[0]
    if kind in _NO_KERNEL:
        return True
    for chained in CheckEvidence.of(checked).trace.split("\nThe above exception was"):
        places = [line for line in chained.splitlines() if line.startswith('  File "')]
        if places and "triton/language/" in places[-1]:
            return True
    return False
