"""Runs `check` on one mutant and determines its outcome."""

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
from assay.selftest.mutants.equivalent import Prover, dtypes
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
"""Exceptions with which a toolchain rejects a source."""


@dataclass(frozen=True)
class Options:
    """The options of `selftest mutants`."""

    limit: int | None = None
    """The most mutants per kernel, spread evenly over all it has."""
    sample: int | None = None
    """The most mutants in all, drawn with `seed`."""
    seed: int = 0
    part: tuple[int, int] = (1, 1)
    """The index of a slice, from 1, and the number of slices, which together are the whole."""
    operators: tuple[str, ...] = ()
    """If given, only these operators."""
    jobs: int | None = None
    workloads: int = 2000
    """The number of workloads on which a mutant that passed is compared with its kernel."""
    seconds: float = 240.0
    """The time limit in seconds of that comparison, per mutant."""
    keep: Path | None = None
    """A folder in which the mutants' files are kept."""
    run: str = field(default_factory=provenance.new_run)


def tried_dtypes(kernel: Kernel, op: Op) -> tuple[str, ...]:
    """Return all dtypes that plain `check` tries, fp32 first: code specific to fp16 is mutated like any other."""
    return tuple(sorted(dtypes(kernel, op), key=lambda name: name != "fp32"))


@dataclass(frozen=True)
class Quick(Job):
    """A check that only determines whether the kernel fails; the failing workload is not reduced."""

    def _failed(self, exploring: Exploration, record: Callable[..., Record]) -> Record:
        assert exploring.seen.failure is not None
        return Job._failed(replace(self, workload=exploring.seen.failure[0]), exploring, record)


@dataclass(frozen=True)
class MutantJob(Job):
    """Checks a mutant in one dtype after the other until one fails; if none does, tries to prove the mutant equivalent.
    One process does all of this, so that mutants do not wait for each other."""

    mutant: Mutant = field(kw_only=True)
    dtypes: tuple[str, ...] = field(kw_only=True)
    options: Options = field(kw_only=True)

    def run(self, settings: Settings, worker: Worker | None) -> tuple[Record, Worker | None]:
        checked: list[Record] = []
        for number in self.dtypes:
            record, worker = Quick(self.kernel, self.op, dtype(number)).run(settings, worker)
            checked.append(record)
            if caught(record):
                return self.judged(record, checked), worker
        if worker:  # a proof has workers of its own
            worker.close()
        proof = _prover(settings.pool, self.options, settings.stop).prove(self.mutant, self.kernel, self.op)
        outcome = Outcome.EQUIVALENT if proof.holds else Outcome.SURVIVED
        proven = {"proof": proof.how, "compared": proof.compared, "differs_at": proof.differs_at}
        return self.record(outcome, f"{outcome}: {proof.how}", checked, **proven), None

    def judged(self, failed: Record, checked: list[Record]) -> Record:
        """Return the record of a mutant that failed `check`: killed, or not a kernel at all."""
        detector = failed.detector
        finding = failed.reason.removeprefix(f"{detector}: ")
        # A mutant that is rejected only in its second dtype ran in the first.
        outcome = Outcome.STILLBORN if len(checked) == 1 and _is_stillborn(failed) else Outcome.KILLED
        words = finding.splitlines()[0] if finding else ""
        reason = f"killed by {detector}: {words}" if outcome is Outcome.KILLED else f"no kernel: {words}"
        found_at = CheckEvidence.of(failed).found_at or failed.workload
        return self.record(outcome, reason, checked, detector=detector, finding=finding, found_at=found_at)

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
    """Return the prover of this process. Its results about a kernel are reused for all mutants of that kernel."""
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
    return Record(
        "selftest",
        name,
        evidence.found_at or f"dtype={'+'.join(dtypes)}",
        STATUS[evidence.outcome],
        reason,
        options.run,
        evidence.to_dict(),
        replay,
        provenance.source_of(file, evidence.line),
        [],
        provenance.provenance(options.seed),
        evidence.seconds,
    )


def caught(checked: Record) -> bool:
    """Return whether `check` failed it. One that never answers also counts, whatever its status."""
    return checked.failed or checked.detector == "timeout"


def _is_stillborn(checked: Record) -> bool:
    """Return whether the toolchain rejected the source, so that there was no kernel to run: by an exception of its
    compiler, or by one raised while Triton's language builds an operation, in its interpreter as in its compiler."""
    if checked.detector != "exception":
        return checked.detector == "build"
    if checked.reason.removeprefix("exception: ").partition(":")[0] in _NO_KERNEL:
        return True
    for chained in CheckEvidence.of(checked).trace.split("\nThe above exception was"):
        places = [line for line in chained.splitlines() if line.startswith('  File "')]
        if places and "triton/language/" in places[-1]:
            return True
    return False
