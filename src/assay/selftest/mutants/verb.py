"""Runs plain `check` on every mutant; one that passes must be proven equivalent, or has survived."""

import random
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from assay import provenance
from assay.backends import Level, here
from assay.catalog.select import everything, select
from assay.check import Options as CheckOptions
from assay.check import verb as checking
from assay.dtype import dtype
from assay.errors import SourceError, UsageError
from assay.kernel import Kernel
from assay.record import Record
from assay.selftest.mutants.evidence import MutantEvidence, Outcome
from assay.selftest.mutants.mutant import LANGUAGES, Mutant, mutants
from assay.selftest.mutants.trial import MutantJob, Options, caught, record_of, tried_dtypes


def plan(what: Iterable[str | Path] | None, options: Options) -> tuple[list[Mutant], list[tuple[Kernel, str]]]:
    """Return the mutants to try, and the kernels whose mutants cannot run on this machine, with the reason."""
    named = [str(item) for item in what or ()]
    wanted = {name for name in named if "@" in name}
    choices = select([n.partition("@")[0] for n in named]) if named else everything()
    made: list[Mutant] = []
    untried: list[tuple[Kernel, str]] = []
    for kernel, op in (choice for choice in choices if _written_out(choice[0])):
        of_kernel = mutants(kernel, op)
        if wanted and any(n.partition("@")[0] == kernel.name for n in wanted):
            of_kernel = [m for m in of_kernel if m.name in wanted]
        if options.operators:
            of_kernel = [m for m in of_kernel if m.operator in options.operators]
        available = here(kernel)
        if available.level in (Level.RUN, Level.INTERPRET):
            made += _spread(of_kernel, options.limit)
        elif of_kernel:
            untried.append((kernel, f"{len(of_kernel)} mutants not tried: {available.reason}; {available.fix}"))
    if missing := sorted(wanted - {m.name for m in made}):
        raise UsageError(f"there is no mutant called '{missing[0]}'", fix="its kernel has changed since, or cannot run")
    if not made and not untried:
        raise UsageError("nothing to change", fix=f"name kernels of these languages: {', '.join(LANGUAGES)}")
    if options.sample is not None and options.sample < len(made):
        chosen = set(random.Random(options.seed).sample(range(len(made)), options.sample))
        made = [m for i, m in enumerate(made) if i in chosen]
    which, slices = options.part
    return made[which - 1 :: slices], untried if which == 1 else []


def _written_out(kernel: Kernel) -> bool:
    """Return whether a kernel has code of its own and is neither a derived variant nor a call into another library."""
    return (
        kernel.address.backend in LANGUAGES
        and kernel.file is not None
        and kernel.file.suffix == ".py"
        and not kernel.needs
        and not kernel.fixed
    )


def _spread(all_: list[Mutant], limit: int | None) -> list[Mutant]:
    """Return at most `limit` of the mutants, evenly spaced."""
    if limit is None or limit >= len(all_):
        return all_
    return [all_[i * len(all_) // limit] for i in range(limit)]


def run(planned: list[Mutant], untried: list[tuple[Kernel, str]], options: Options) -> Iterator[Record]:
    """Yield a record for each mutant as soon as its outcome is known, including stillborn ones."""
    if options.keep and options.keep.exists() and any(options.keep.iterdir()):
        raise UsageError(f"{options.keep} is not empty", fix="name a folder that does not exist yet")
    for kernel, why in untried:
        evidence = MutantEvidence(kernel.name, kernel.address.backend)
        yield record_of(kernel.name, evidence, why, options, f"assay selftest mutants {kernel.name}", kernel.file)
    with tempfile.TemporaryDirectory(prefix="assay-mutants-") as place:
        folder = options.keep or Path(place)
        jobs: dict[str, MutantJob] = {}
        for number, mutant in enumerate(planned):
            try:
                kernel, op = mutant.write((folder / f"{number:05d}").resolve())
            except SourceError as problem:
                job = MutantJob(
                    mutant.kernel, mutant.op, dtype(mutant.op.dtypes[0]), mutant=mutant, dtypes=(), options=options
                )
                yield job.record(Outcome.STILLBORN, str(problem), [])
                continue
            dtypes = tried_dtypes(kernel, op)
            job = MutantJob(kernel, op, dtype(dtypes[0]), mutant=mutant, dtypes=dtypes, options=options)
            jobs[provenance.source_of(kernel.file)["file"]] = job
        checking_options = CheckOptions(jobs=options.jobs, run=options.run)
        for record in checking.run(list(jobs.values()), checking_options) if jobs else ():
            yield record if record.verb == "selftest" else _lost(jobs[record.source["file"]], record)


def _lost(job: MutantJob, record: Record) -> Record:
    """Return the record of a mutant that ended the process judging it, or that could not be judged."""
    if caught(record):
        return job.judged(record, [record])
    return job.record(Outcome.SURVIVED, f"survived: {record.reason}", [record])
