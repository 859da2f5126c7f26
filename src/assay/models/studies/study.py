"""What every study of a model shares: what a user may set, the process that is asked, and the record at its end."""

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
    """How much is done for each figure."""

    rounds: int = 10
    """Each takes every arm, beginning with another one."""
    budget: float = 0.0
    """Seconds of calls for each arm."""
    threads: int = 0
    """On the CPU; 0: as torch chooses."""
    seed: int = 0
    """Of inputs, and of weights where there are no others."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a user may set of a study that runs a model in other processes."""

    batches: tuple[int, ...]
    dtype: str = "fp32"
    device: str = ""
    """cuda or cpu; empty: the GPU where there is one."""
    backend: str = "inductor"
    """Of torch.compile."""
    effort: Effort = field(default_factory=Effort)
    timeout: float = 600.0
    """Seconds for one question to one process."""
    run: str = field(default_factory=provenance.new_run)

    def number(self, model: Entry) -> str:
        """The name of the format, once it and the batch sizes are sure to be possible."""
        if not self.batches or min(self.batches) < 1:
            raise UsageError("a batch has at least one element", fix="--batch 1,16,64")
        number = format_called(self.dtype).name
        if number not in model.dtypes or number == "fp64":  # float64 is what the others are held against
            fits = ", ".join(d for d in model.dtypes if d != "fp64")
            raise UsageError(f"{model.name} is not run in {number}", fix=f"--dtype with one of {fits}")
        return number


def verify(what: str, names: Collection[str], known: Collection[str]) -> None:
    """A UsageError for the first name that is not known."""
    for name in names:
        if name not in known:
            raise UsageError(f"no {what} called '{name}'", fix=f"--{what} {','.join(known)}")


def device(asked: str) -> str:
    """`cuda` or `cpu`; a UsageError for what is neither, and for a GPU that is not here."""
    if asked not in ("", "cuda", "cpu"):
        raise UsageError(f"no device called '{asked}'", fix="--device cuda or cpu")
    if asked == "cuda" and not host.runs_on_gpu():
        raise UsageError("no CUDA device here that torch can use", fix="--device cpu")
    return asked or ("cuda" if host.runs_on_gpu() else "cpu")


class Failure(AssayError):
    """A process that was lost, or whose answer is an exception: its message, and its details as evidence."""

    def __init__(self, problem: Refused | WorkerLost) -> None:
        if isinstance(problem, WorkerLost):
            super().__init__(last_words(problem))
            self.evidence = {"how": problem.how, "printed": problem.output}
            self.status, self.mistake = Status.FAIL, None
            return
        # A compiler's message may have many pages; the evidence keeps all of them.
        ours = problem.fields["ours"]
        what = problem.what if ours else next(filter(None, problem.what.splitlines()), "")
        super().__init__(what, where=problem.where, fix=problem.fix)
        self.evidence = problem.fields
        self.status = Status.SKIPPED if problem.fields["type"] == Lacking.__name__ else Status.FAIL
        self.mistake = problem.wrong_use
        """The same as an error here, where what was asked for, or the user's own model, is wrong."""


class Child:
    """A fresh process that runs a study's module."""

    def __init__(self, module: str, environment: Mapping[str, str], seconds: float, tick: Tick) -> None:
        """`seconds`: the limit for each answer. `tick` is called with what the process is doing."""
        self._process: Fresh | None = Fresh(module, dict(environment))
        self._seconds, self._tick = seconds, tick

    def ask(self, **question: Any) -> dict[str, Any]:
        """The answer; a Failure where there is none."""
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
    """`source`: what else the record says of where the figures come from."""
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
