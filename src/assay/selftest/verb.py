"""Runs `check`, `bench` or `tune` on both kernels of every entry, as on a user's."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay import host, provenance, sanitize
from assay.backends.base import no_gpu
from assay.bench import verb as benching
from assay.bench.planning import BenchPlan
from assay.check import Options
from assay.check import verb as checking
from assay.check.evidence import CheckEvidence
from assay.check.job import Job
from assay.dtype import dtype
from assay.errors import AssayError
from assay.record import Record, Status
from assay.selftest import tuning
from assay.selftest.entry import CORPUS, CorpusEntry, entries
from assay.selftest.evidence import SelftestEvidence
from assay.watching import watched
from assay.worker import Limits
from assay.workload import Workload


@dataclass
class _Pair:
    """Collects the records of an entry's two kernels until they become one record."""

    entry: CorpusEntry
    run: str
    seed: int
    checked: dict[str, Record] = field(default_factory=dict)
    """The records of the entry's verb, by `wrong` and `fixed`."""
    caught: str = ""
    finding: str = ""
    twin: str = ""

    def judged(self) -> Record:
        """Return the entry's record: it passes if the right detector caught the wrong kernel and the fixed one
        passed."""
        wrong, fixed = self.checked["wrong"], self.checked["fixed"]
        for record in (wrong, fixed):
            if record.status in (Status.SKIPPED, Status.COMPILED):
                return self.record(Status.SKIPPED, record.reason)
        began = time.perf_counter()
        self.caught = wrong.detector
        self.finding = wrong.reason.partition("\n")[0].removeprefix(f"{self.caught}: ")
        self.twin = str(fixed.status)
        if self.entry.verb in ("bench", "tune") and Status.INCONCLUSIVE in (wrong.status, fixed.status):
            unclear = wrong if wrong.status is Status.INCONCLUSIVE else fixed
            which = "wrong kernel" if unclear is wrong else "fixed twin"
            return self.record(Status.INCONCLUSIVE, f"this machine is too busy to time the {which}: {unclear.reason}")
        wrongs = (
            [] if fixed.status is Status.PASS else [f"the fixed twin did not pass on {fixed.workload}: {fixed.reason}"]
        )
        if self.entry.detector == "sanitizer" and (problem := self._sanitized()):
            wrongs.append(problem)
        if self.caught not in self.entry.detector.split(" or "):
            instead = f"was caught by {self.caught}, not by {self.entry.detector}" if self.caught else "was not caught"
            wrongs.insert(0, f"the wrong kernel {instead}: {self.finding}")
        seconds = wrong.seconds + fixed.seconds + time.perf_counter() - began
        if wrongs:
            return self.record(Status.FAIL, "; ".join(wrongs), seconds)
        return self.record(Status.PASS, f"caught by {self.caught}: {self.finding}", seconds)

    def _sanitized(self) -> str:
        """Run both kernels under compute-sanitizer. Return what is wrong with the twin's report, or an empty string."""
        reports = {}
        for which, (kernel, op) in self.entry.kernels().items():
            try:
                reports[which] = sanitize.run(kernel, Workload.of(op, self.entry.workload), self.entry.tool)
            except AssayError as error:
                reports[which] = sanitize.Report(self.entry.tool, (), str(error))
        if problems := reports["wrong"].problems:
            self.caught, self.finding = "sanitizer", str(problems[0])
        else:
            self.finding = reports["wrong"].trouble or f"{self.entry.tool} found nothing; check: {self.finding}"
        if reports["fixed"].clean:
            return ""
        self.twin = str(Status.FAIL)
        return f"the fixed twin did not pass {self.entry.tool}: {reports['fixed']}"

    def record(self, status: Status, reason: str, seconds: float = 0.0) -> Record:
        entry, wrong, fixed = self.entry, self.checked.get("wrong"), self.checked.get("fixed")
        evidence = SelftestEvidence(entry.summary, entry.detector, self.caught, self.finding, self.twin)
        if wrong and fixed:
            evidence = replace(
                evidence,
                kernel=wrong.kernel,
                found_at=CheckEvidence.of(wrong).found_at or wrong.workload,
                twin_reason=fixed.reason,
                check=str(wrong.status) if entry.verb == "check" else "",
                bench=str(wrong.status) if entry.verb == "bench" else "",
                tune=str(wrong.status) if entry.verb == "tune" else "",
            )
        return Record(
            "selftest",
            entry.name,
            wrong.workload if wrong else entry.workload or f"dtype={entry.dtype}",
            status,
            reason,
            self.run,
            evidence.to_dict(),
            f"assay selftest {entry.name}",
            provenance.source_of(entry.file),
            [],
            provenance.provenance(self.seed),
            seconds,
        )


def selftest(
    names: Iterable[str] | None = None,
    *,
    folder: Path = CORPUS,
    jobs: int | None = None,
    workloads: int | None = None,
    seed: int = 0,
) -> Iterator[Record]:
    """Run the corpus, or the named entries, with the defaults of `check` unless fewer workloads are requested.

    Yield one record per entry as it is finished."""
    chosen = entries(names, folder)
    yield from watched("selftest", _run(chosen, jobs, workloads, seed), [entry.name for entry in chosen])


def _run(chosen: Iterable[CorpusEntry], jobs: int | None, workloads: int | None, seed: int) -> Iterator[Record]:
    run = provenance.new_run()
    planned: dict[tuple[float, int | None], list[Job]] = {}
    timed: list[BenchPlan] = []
    tuned: list[CorpusEntry] = []
    pairs: dict[str, _Pair] = {}
    for entry in chosen:
        pair = _Pair(entry, run, seed)
        if why := _cannot(entry):
            yield pair.record(Status.SKIPPED, why)
            continue
        pairs[provenance.source_of(entry.file)["file"]] = pair
        if entry.verb == "tune":
            tuned.append(entry)
            continue
        if entry.verb == "bench":
            # Both kernels in one cell: they are timed in the same rounds.
            kernels = list(entry.kernels().values())
            op = kernels[0][1]
            timed.append(BenchPlan(Workload.of(op, entry.workload), [kernel for kernel, _ in kernels], ""))
            continue
        for which, (kernel, op) in entry.kernels().items():
            workload = Workload.of(op, entry.workload) if entry.workload else None
            job = Job(kernel, op, workload.dtype if workload else dtype(entry.dtype), workload)
            # A twin must never run out of time or memory.
            seconds = entry.seconds if which == "wrong" else max(entry.seconds, Limits.seconds)
            memory = int(entry.memory * 2**30) if which == "wrong" and entry.memory else None
            planned.setdefault((seconds, memory), []).append(job)
    for (seconds, memory), group in planned.items():
        options = Options(workloads=workloads, seconds=seconds, memory=memory, jobs=jobs, seed=seed, run=run)
        for record in checking.run(group, options):
            yield from _paired(pairs, record)
    # Timed last, one entry after another, since nothing else may run while a kernel is timed.
    times = benching.Options(rounds=5, budget=0.2, threads=1, against=(), second_clock=False, seed=seed, run=run)
    for record in benching.run(timed, times) if timed else ():
        yield from _paired(pairs, record)
    for entry in tuned:
        for record in tuning.records(entry, run, seed):
            yield from _paired(pairs, record)


def _paired(pairs: dict[str, _Pair], record: Record) -> Iterator[Record]:
    """Store the record of one kernel; yield the entry's record once both are there."""
    pair = pairs[record.source["file"]]
    pair.checked[record.kernel.rpartition(":")[2]] = record
    if len(pair.checked) == 2:
        yield pair.judged()


def _cannot(entry: CorpusEntry) -> str:
    """Return why this machine cannot run an entry and what to do, or an empty string."""
    if entry.needs == "sanitizer":
        reason, fix = sanitize.why_not()
        return f"{reason}; {fix}" if reason else ""
    if entry.needs == "no gpu" and host.runs_on_gpu():
        return "its mistake shows on the CPU or in an interpreter; run it without a GPU (CUDA_VISIBLE_DEVICES=)"
    if entry.needs == "gpu" and not host.runs_on_gpu():
        return f"{no_gpu()}; run it on a machine with an NVIDIA GPU"
    return ""
