"""Common parts of all studies of a model: options, the process that runs it, and the record."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay import host, provenance
from assay.bench.statistics import Estimate
from assay.dtype import dtype as format_called
from assay.errors import AssayError, Lacking, UsageError
from assay.evidence import Evidence
from assay.models.subject.entry import Entry
from assay.models.subject.registry import entry
from assay.record import Record, Status
from assay.worker import WorkerLost
from assay.worker.fresh import Fresh, Refused, Tick, last_words


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is measured for each figure."""

    rounds: int = 10
    """Number of rounds; each takes every arm and begins with a different one."""
    budget: float = 0.0
    """Seconds of calls for each arm."""
    threads: int = 0
    """CPU threads; 0: torch's default."""
    seed: int = 0
    """Seed of inputs, and of weights if they are random."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a study that runs a model in other processes."""

    batches: tuple[int, ...]
    dtype: str = "fp32"
    device: str = ""
    """cuda or cpu; empty: the GPU if there is one."""
    backend: str = "inductor"
    """Backend of torch.compile."""
    effort: Effort = field(default_factory=Effort)
    timeout: float = 600.0
    """Seconds for each answer of a process."""
    run: str = field(default_factory=provenance.new_run)

    def number(self, model: Entry) -> str:
        """Return the dtype's name. Raise UsageError if the dtype or a batch size is not possible."""
        if not self.batches or min(self.batches) < 1:
            raise UsageError("a batch has at least one element", fix="--batch 1,16,64")
        number = format_called(self.dtype).name
        if number not in model.dtypes or number == "fp64":  # float64 is the reference for the others
            fits = ", ".join(d for d in model.dtypes if d != "fp64")
            raise UsageError(f"{model.name} is not run in {number}", fix=f"--dtype with one of {fits}")
        return number


def verify(what: str, names: Collection[str], known: Collection[str]) -> None:
    """Raise UsageError for the first unknown name."""
    for name in names:
        if name not in known:
            raise UsageError(f"no {what} called '{name}'", fix=f"--{what} {','.join(known)}")


def device(asked: str) -> str:
    """Return `cuda` or `cpu`. Raise UsageError for anything else, and for a GPU that is not available."""
    if asked not in ("", "cuda", "cpu"):
        raise UsageError(f"no device called '{asked}'", fix="--device cuda or cpu")
    if asked == "cuda" and not host.runs_on_gpu():
        raise UsageError("no CUDA device here that torch can use", fix="--device cpu")
    return asked or ("cuda" if host.runs_on_gpu() else "cpu")


class Failure(AssayError):
    """A process was lost or answered with an exception; has its message, and its details as evidence."""

    def __init__(self, problem: Refused | WorkerLost) -> None:
        if isinstance(problem, WorkerLost):
            super().__init__(last_words(problem))
            self.evidence = {"how": problem.how, "printed": problem.output}
            self.status, self.mistake = Status.FAIL, None
            return
        # A compiler's message may be many pages long; only the evidence keeps all of it.
        ours = problem.fields["ours"]
        what = problem.what if ours else next(filter(None, problem.what.splitlines()), "")
        super().__init__(what, where=problem.where, fix=problem.fix)
        self.evidence = problem.fields
        self.status = Status.SKIPPED if problem.fields["type"] == Lacking.__name__ else Status.FAIL
        self.mistake = problem.wrong_use
        """The same error for this process, if the request or the user's own model is wrong."""


class Child:
    """A fresh process that runs a study's module."""

    def __init__(self, module: str, environment: Mapping[str, str], seconds: float, tick: Tick) -> None:
        """`seconds`: the time limit for each answer. `tick` is called with the process's current activity."""
        self._process: Fresh | None = Fresh(module, dict(environment))
        self._seconds, self._tick = seconds, tick

    def ask(self, **question: Any) -> dict[str, Any]:
        """Return the answer. Raise Failure if there is none."""
        if self._process is None:
            raise Failure(WorkerLost("exit", "its process was lost before this was asked", ""))
        try:
            return self._process.ask(question, self._seconds, self._tick)
        except Refused as problem:
            raise Failure(problem) from None
        except WorkerLost as lost:
            self.close()
            raise Failure(lost) from None

    def close(self) -> None:
        if self._process is not None:
            self._process.__exit__()
            self._process = None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def record(
    model: str,
    workload: str,
    replay: str,
    status: Status,
    reason: str,
    evidence: Evidence,
    *,
    run: str,
    seed: int,
    seconds: float = 0.0,
    steady: Estimate | None = None,
    samples: list[list[float]] | None = None,
    **source: Any,
) -> Record:
    """`source`: additional fields of the record's source."""
    return Record(
        "model",
        model,
        workload,
        status,
        reason,
        run,
        evidence.to_dict(),
        replay,
        source=provenance.source_of(entry(model).file) | source,
        provenance=provenance.provenance(seed),
        seconds=seconds,
        median=steady.median if steady else None,
        interval=steady.interval if steady else None,
        samples=samples,
    )
