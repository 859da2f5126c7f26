"""`assay model train`: trains a model with any kernels inside. A run that is stopped and resumed ends the same."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from assay import host, provenance
from assay.errors import UsageError
from assay.models.studies import study
from assay.models.studies.train.evidence import Data, Memory, Swapped, TrainEvidence, Weights
from assay.models.studies.train.fit import Diverged, Fit
from assay.models.studies.train.planning import Options, Plan, plan
from assay.models.subject import checkpoint
from assay.models.subject.checkpoint import Checkpoint
from assay.models.subject.data.asset import Tell, silent
from assay.models.subject.data.labelled import Labelled
from assay.models.subject.entry import seeded
from assay.models.subject.score import Score, accuracy
from assay.models.subject.suitable import verify_takes
from assay.models.swap import swap
from assay.record import Record, Status
from assay.settings import settings_of

_POINTS = 40
"""Points of the loss curve for each epoch."""

Tick = Callable[[str, int], None]
"""Called with the current activity and the number of the plan's steps done."""


def train(model: str = "mnist-cnn", options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Train a model: a name of the registry, or the user's own. Yield one record, when it is done."""
    yield from run(plan(model, options or settings_of(Options, settings)))


def run(planned: Plan, tick: Tick = lambda text, done: None, tell: Tell = silent) -> Iterator[Record]:
    began, processor = time.perf_counter(), time.process_time()
    kept = _kept(planned) if planned.options.resume else None
    if kept and kept.facts["finished"]:
        tell(f"{planned.checkpoint} is of a finished run: this is what it gave")
        yield _record(planned, TrainEvidence.read(kept.facts["evidence"]), kept.facts["seconds"])
        return
    with _threads(planned), seeded(planned.options.seed):
        evidence = _trained(planned, kept, tick, tell)
    seconds = time.perf_counter() - began
    evidence = replace(evidence, cpu_seconds=time.process_time() - processor, peak_memory=_peak(planned.device))
    if evidence.test:
        # The checkpoint of a finished run holds its evidence, so that running it again does not read the test split.
        kept = checkpoint.read(planned.checkpoint)
        facts = {**kept.facts, "finished": True, "evidence": evidence.to_dict(), "seconds": seconds}
        checkpoint.write(planned.checkpoint, Checkpoint(kept.tensors, facts))
    yield _record(planned, evidence, seconds)


def _kept(planned: Plan) -> Checkpoint | None:
    """Return the checkpoint to resume from, or None if there is none yet."""
    if not planned.checkpoint.exists():
        return None
    kept = checkpoint.read(planned.checkpoint)
    if "finished" not in kept.facts:
        raise UsageError(f"{planned.checkpoint} is no checkpoint of a training", fix="name another --checkpoint")
    before = kept.facts.get("config", {})
    for name, now in asdict(planned.config).items():
        if before.get(name) != now:
            raise UsageError(
                f"{planned.checkpoint} is of another run: its {name} is {before.get(name)!r}, not {now!r}",
                fix="give the same settings, another --checkpoint, or leave out --resume",
            )
    return kept


def _trained(planned: Plan, kept: Checkpoint | None, tick: Tick, tell: Tell) -> TrainEvidence:
    """Train the model, evaluate it once on the test split, and return the evidence."""
    model = planned.entry.build(planned.options.seed, **planned.options.options).to(planned.device)
    verify_takes(planned.entry, model, planned.data)
    if not kept:
        planned.entry.start(model, planned.options.initial, tell)
    learn, validate = _loaded(planned, ("train", "validation"), tell)
    if planned.device == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()
    rules = dict(planned.options.swap)
    with planned.entry.guarded("training it"), swap(model, rules) if rules else nullcontext() as report:
        fit = Fit(model, learn, validate, planned.config)
        evidence = TrainEvidence(planned.config, sum(p.numel() for p in model.parameters()))
        if kept:
            fit.restore(kept)
            evidence = replace(evidence, resumed=f"at epoch {fit.epoch + 1}, after {fit.step} steps of it")
            tell(f"resumed {evidence.resumed}")
        try:
            _fit(fit, planned, tick)
        except Diverged as problem:
            return replace(evidence, diverged=problem.what, epochs=fit.history, curve=curve(fit))
        model.load_state_dict(fit.best)
        tick("the test split", fit.done)
        (judged,) = _loaded(planned, ("test",), tell)
        score = accuracy(model, judged)
        swapped = Swapped(report.model, report.rules, report.active, list(report.sites)) if report else None
    sizes = {"train": len(learn), "validation": len(validate), "test": len(judged)}
    seconds = sorted(epoch.seconds for epoch in fit.history)
    return replace(
        evidence,
        data=Data(learn.name, sizes, {**learn.sha256, **validate.sha256, **judged.sha256}),
        epochs=fit.history,
        curve=curve(fit),
        best_epoch=fit.best_epoch,
        stopped_early=fit.epoch < fit.settings.epochs,
        test=score,
        seconds_per_epoch=seconds[len(seconds) // 2],
        swap=swapped,
        weights=_keep_weights(planned, fit, score),
    )


def _loaded(planned: Plan, splits: tuple[str, ...], tell: Tell) -> list[Labelled]:
    parts = planned.data.load(*splits, tokens=planned.tokens, tell=tell)
    return [part.part(0, planned.options.items or len(part)).to(planned.device) for part in parts]


def _fit(fit: Fit, planned: Plan, tick: Tick) -> None:
    def save() -> None:
        state = fit.state()
        facts = {**state.facts, "config": asdict(planned.config), "finished": False}
        checkpoint.write(planned.checkpoint, Checkpoint(state.tensors, facts))

    def ticked() -> None:
        last = f", validation {fit.history[-1].validation_accuracy:.2%}" if fit.history else ""
        tick(f"epoch {fit.epoch + 1}{last}", fit.done)

    fit.run(save, planned.options.every, ticked)


def curve(fit: Fit) -> list[tuple[int, float]]:
    """Return the training loss as pairs of steps done and the mean loss since the previous point."""
    window = max(1, fit.steps // _POINTS)
    losses = fit.losses[: fit.done].cpu()
    return [(end, float(losses[end - window : end].mean())) for end in range(window, len(losses) + 1, window)]


def _keep_weights(planned: Plan, fit: Fit, score: Score) -> Weights:
    facts = {"config": asdict(planned.config), "test": asdict(score), "epoch": fit.best_epoch}
    digest = checkpoint.write(planned.weights, Checkpoint(fit.best, facts))
    return Weights(_shown(planned.weights), digest, planned.weights.stat().st_size)


def _shown(file: Path) -> str:
    """Return the path relative to the data folder if it is inside, because records are read on other machines, too."""
    folder = host.data_folder()
    return str(file.relative_to(folder)) if folder in file.parents else provenance.shown(file)


@contextmanager
def _threads(planned: Plan) -> Iterator[None]:
    """Set the number of threads, which is part of the run because sums depend on it."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(planned.config.threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _peak(device: str) -> Memory:
    if device == "cuda":
        import torch

        return Memory(torch.cuda.max_memory_allocated(), "tensors on the GPU")
    return Memory(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "the whole process")


def _record(planned: Plan, evidence: TrainEvidence, seconds: float) -> Record:
    status, reason = Status.FAIL, evidence.diverged
    if evidence.test:
        value, target = evidence.test.value, planned.options.target
        status = Status.PASS if value >= target else Status.FAIL
        reason = f"{value:.2%} on {planned.data.name}'s test split, best of {len(evidence.epochs)} epochs"
        reason += "" if value >= target else f"; asked for {target:.2%}"
    options = planned.options
    return study.record(
        planned.entry.name,
        planned.workload,
        planned.replay,
        status,
        reason,
        evidence,
        run=options.run,
        seed=options.seed,
        seconds=seconds,
    )
