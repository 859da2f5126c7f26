"""The verb itself: every mutant goes through plain `check`; what passes must be proven equivalent, or has survived."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from assay import provenance
from assay.backends import Level, here
from assay.check import Options as CheckOptions
from assay.check import verb as checking
from assay.check.job import Job
from assay.dtype import dtype
from assay.errors import SourceError, UsageError
from assay.kernel import Kernel
from assay.library.select import Choice, everything, select
from assay.record import Record
from assay.selftest.mutants.equivalent import Prover
from assay.selftest.mutants.evidence import MutantEvidence, Outcome
from assay.selftest.mutants.mutant import LANGUAGES, Mutant, mutants
from assay.selftest.mutants.trial import MutantJob, Options, Trial, record_of, tried_dtypes
from assay.worker import Limits, Pool


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
    if options.keep and options.keep.exists() and any(options.keep.iterdir()):
        raise UsageError(f"{options.keep} is not empty", fix="name a folder that does not exist yet")
    for kernel, why in untried:
        evidence = MutantEvidence(kernel.name, kernel.address.backend)
        yield record_of(kernel.name, evidence, why, options, f"assay selftest mutants {kernel.name}", kernel.file)
    with tempfile.TemporaryDirectory(prefix="assay-mutants-") as place:
        folder = options.keep or Path(place)
        trials: dict[str, Trial] = {}
        jobs: list[Job] = []
        for number, mutant in enumerate(planned):
            try:
                kernel, op = mutant.write((folder / f"{number:05d}").resolve())
            except SourceError as problem:
                yield Trial(mutant, mutant.kernel, mutant.op, ()).record(Outcome.STILLBORN, str(problem), options)
                continue
            trial = Trial(mutant, kernel, op, tried_dtypes(kernel, op))
            trials[provenance.source_of(kernel.file)["file"]] = trial
            jobs += [MutantJob(kernel, op, dtype(d), None, trial) for d in trial.dtypes]
        passed: list[Trial] = []
        told: set[str] = set()
        for checked in checking.run(jobs, CheckOptions(jobs=options.jobs, run=options.run)) if jobs else ():
            trial = trials[checked.source["file"]]
            trial.checked.append(checked)
            if trial.mutant.name in told:
                continue  # both dtypes were tried side by side, and failed
            if trial.lost(checked):
                told.add(trial.mutant.name)
                yield trial.judged(checked, options)
            elif len(trial.checked) == len(trial.dtypes):
                passed.append(trial)
        yield from _proven(passed, options)


def _proven(passed: list[Trial], options: Options) -> Iterator[Record]:
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
                    options,
                    proof=proof.how,
                    compared=proof.compared,
                    differs_at=proof.differs_at,
                )
        finally:
            prover.stop()
            for one in waiting:
                one.cancel()
