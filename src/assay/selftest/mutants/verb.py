"""The verb itself: every mutant goes through plain `check`; what passes must be proven equivalent, or has survived."""

from __future__ import annotations

import random
import shlex
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay import provenance
from assay.backends import Level, here
from assay.check import Options as CheckOptions
from assay.check import verb as checking
from assay.check.job import Job, Settings
from assay.dtype import dtype
from assay.errors import SourceError, UsageError
from assay.kernel import Kernel
from assay.library.select import Choice, everything, select
from assay.op import Op
from assay.record import Record, Status
from assay.selftest.mutants.equivalent import Prover
from assay.selftest.mutants.evidence import STATUS, MutantEvidence, Outcome
from assay.selftest.mutants.mutant import LANGUAGES, Mutant, mutants
from assay.worker import Limits, Pool, Worker

_NO_KERNEL = (
    "BuildError", "SyntaxError", "ImportError", "CompilationError", "UnsupportedLanguageConstruct", "TypingError",
    "LoweringError", "UnsupportedError", "UnsupportedBytecodeError", "NvvmError",
)  # fmt: skip
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


def plan(what: Iterable[str | Path] | None, options: Options) -> tuple[list[Mutant], list[tuple[Kernel, str]]]:
    """The mutants to try, and the kernels of which this machine can run none, with the reason."""
    named = [str(item) for item in what or ()]
    wanted = {name for name in named if "@" in name}
    choices = select([n.partition("@")[0] for n in named]) if named else everything()
    made: list[Mutant] = []
    untried: list[tuple[Kernel, str]] = []
    for kernel, op in choices:
        if not _written_out((kernel, op)):
            continue
        found = mutants(kernel, op)
        if wanted and any(n.partition("@")[0] == kernel.name for n in wanted):
            found = [m for m in found if m.name in wanted]
        if options.operators:
            found = [m for m in found if m.operator in options.operators]
        available = here(kernel)
        if available.level not in (Level.RUN, Level.INTERPRET):
            if found:
                untried.append((kernel, f"{len(found)} mutants not tried: {available.reason}; {available.fix}"))
            continue
        made += _spread(found, options.limit)
    if missing := sorted(wanted - {m.name for m in made}):
        raise UsageError(f"there is no mutant called '{missing[0]}'", fix="its kernel has changed since, or cannot run")
    if not made and not untried:
        raise UsageError("nothing to change", fix=f"name kernels of these languages: {', '.join(LANGUAGES)}")
    if options.sample is not None and options.sample < len(made):
        chosen = set(random.Random(options.seed).sample(range(len(made)), options.sample))
        made = [m for i, m in enumerate(made) if i in chosen]
    which, slices = options.part
    return made[which - 1 :: slices], untried if which == 1 else []


def _written_out(choice: Choice) -> bool:
    """A kernel in a file of its own that is no call into somebody else's."""
    kernel, _ = choice
    return (
        kernel.address.backend in LANGUAGES
        and kernel.file is not None
        and kernel.file.suffix == ".py"
        and not kernel.needs
    )


def _spread(found: list[Mutant], limit: int | None) -> list[Mutant]:
    if limit is None or limit >= len(found):
        return found
    return [found[i * len(found) // limit] for i in range(limit)]


def run(planned: list[Mutant], untried: list[tuple[Kernel, str]], options: Options) -> Iterator[Record]:
    """A record for each mutant as soon as its fate is known, stillborn ones included."""
    for kernel, why in untried:
        evidence = MutantEvidence(kernel.name, kernel.address.backend)
        yield _record(kernel.name, evidence, why, options, f"assay selftest mutants {kernel.name}", kernel.file)
    with tempfile.TemporaryDirectory(prefix="assay-mutants-") as place:
        folder = options.keep or Path(place)
        trials: dict[str, _Trial] = {}
        jobs: list[Job] = []
        for number, mutant in enumerate(planned):
            try:
                kernel, op = mutant.write((folder / f"{number:05d}").resolve())
            except SourceError as problem:
                yield _Trial(mutant, mutant.kernel, mutant.op, ()).record(Outcome.STILLBORN, str(problem), options)
                continue
            trial = _Trial(mutant, kernel, op, tried_dtypes(kernel, op))
            trials[provenance.source_of(kernel.file)["file"]] = trial
            jobs += [_Job(kernel, op, dtype(d), None, trial) for d in trial.dtypes]
        passed: list[_Trial] = []
        for checked in checking.run(jobs, CheckOptions(jobs=options.jobs, run=options.run)) if jobs else ():
            trial = trials[checked.source["file"]]
            trial.checked.append(checked)
            if trial.lost(checked):
                yield trial.judged(checked, options)
            elif not trial.ended and len(trial.checked) == len(trial.dtypes):
                passed.append(trial)
        yield from _proven(passed, options)


def _proven(passed: list[_Trial], options: Options) -> Iterator[Record]:
    """The mutants that `check` let pass: equivalent, or survivors."""
    if not passed:
        return
    width = min(options.jobs or 2, len(passed))
    with Pool(Limits()) as pool, ThreadPoolExecutor(width) as threads:
        prover = Prover(pool, options.workloads, options.seconds)
        waiting = {threads.submit(prover.prove, t.mutant, t.kernel, t.op): t for t in passed}
        try:
            for done in as_completed(waiting):
                proof, trial = done.result(), waiting[done]
                yield trial.record(
                    Outcome.EQUIVALENT if proof.holds else Outcome.SURVIVED,
                    f"{'equivalent' if proof.holds else 'survived'}: {proof.how}",
                    options, proof=proof.how, compared=proof.compared, differs_at=proof.differs_at,
                )  # fmt: skip
        finally:
            prover.stop()
            for one in waiting:
                one.cancel()


def tried_dtypes(kernel: Kernel, op: Op) -> tuple[str, ...]:
    """fp32, or the first that the kernel has, and one of 16 bits."""
    possible = [d for d in op.dtypes if not kernel.dtypes or d in kernel.dtypes]
    first = "fp32" if "fp32" in possible else possible[0]
    halves = [d for d in ("bf16", "fp16") if d in possible and d != first]
    return (first, *halves[:1])


@dataclass
class _Trial:
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
        outcome = Outcome.STILLBORN if _is_stillborn(checked) else Outcome.KILLED
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
            mutant.kernel.name, mutant.kernel.address.backend, mutant.operator, provenance.shown(mutant.file),
            mutant.line, mutant.column, mutant.before, mutant.after, outcome, dtypes=self.dtypes, **(known | more),
        )  # fmt: skip
        replay = f"assay selftest mutants {shlex.quote(mutant.name)}"
        return _record(mutant.name, evidence, reason, options, replay, mutant.kernel.file, self.dtypes)


def _record(
    name: str, evidence: MutantEvidence, reason: str, options: Options, replay: str, file: Path | None,
    dtypes: tuple[str, ...] = (),
) -> Record:  # fmt: skip
    source = provenance.source_of(file, evidence.line)
    return Record(
        "selftest", name, evidence.found_at or f"dtype={'+'.join(dtypes)}", STATUS[evidence.outcome], reason,
        options.run, evidence.to_dict(), replay, source, [], provenance.provenance(options.seed), evidence.seconds,
    )  # fmt: skip


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
    trace = str(checked.evidence.get("trace", ""))
    places = [line for line in trace.splitlines() if line.startswith('  File "')]
    kind = checked.reason.removeprefix("exception: ").partition(":")[0]
    return kind in _NO_KERNEL or (bool(places) and "triton/language/" in places[-1])


@dataclass(frozen=True)
class _Job(Job):
    """A mutant in one dtype. Whether it fails is all that is asked: what failed is not made small, and once one dtype
    has failed the others are left out."""

    trial: _Trial | None = None

    def run(self, settings: Settings, worker: Worker | None) -> tuple[Record, Worker | None]:
        assert self.trial is not None
        if not self.trial.ended:
            found, worker = super().run(settings, worker)
            object.__setattr__(self.trial, "ended", _caught(found))
            return found, worker
        return Record(
            "check", self.kernel.name, f"dtype={self.dtype}", Status.SKIPPED, "another dtype failed", settings.run,
            {"not_needed": True}, source=provenance.source_of(self.kernel.file, self.kernel.line),
        ), worker  # fmt: skip

    def _failed(self, seen: Any, *rest: Any, **named: Any) -> Record:
        assert seen.failure is not None
        return Job._failed(replace(self, workload=seen.failure[0]), seen, *rest, **named)


