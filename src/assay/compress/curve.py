"""The points of a curve: for each seed, a base model and then each compressed model, judged as loaded from its file."""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay import provenance
from assay.compress import items, latency, saved
from assay.compress.evidence import CompressEvidence, Layer
from assay.compress.layers import layers
from assay.compress.planning import CONTROL, Plan, Point
from assay.compress.prepared import treatments
from assay.compress.task import Task
from assay.compress.treatment import Treatment, treat
from assay.models.studies.train.fit import Diverged
from assay.models.subject.data.asset import Tell, silent
from assay.record import Record, Status

if TYPE_CHECKING:
    import torch
    from torch import nn

Tick = Callable[[str], None]


@dataclass(frozen=True)
class _Base:
    model: nn.Module
    sha256: str
    seed: int
    right: torch.Tensor
    """Which items of the test split it classifies correctly."""
    bits: int


def run(planned: Plan, tick: Tick = lambda text: None, tell: Tell = silent) -> Iterator[Record]:
    options = planned.options
    tick("reading the data")
    task = Task.of(planned.entry, planned.device, options.quick, options.tokens, tell)
    for seed in options.seeds:
        tick(f"seed {seed}: the base model")
        model, sha256 = task.base(seed, tick)
        bits = sum(8 * t.nbytes for t in {id(t): t for t in model.state_dict().values()}.values())
        base = _Base(model, sha256, seed, items.right(model, task.test), bits)
        for point in planned.points:
            tick(f"seed {seed}: {point.label}")
            yield _point(planned, task, base, point)


def _point(planned: Plan, task: Task, base: _Base, point: Point) -> Record:
    began = time.perf_counter()
    model = copy.deepcopy(base.model)
    done = treatments(model, point, task, base.seed)
    treat(layers(model), done)
    try:
        task.train_on(model, point.epochs, base.seed)
    except Diverged as problem:
        told = CompressEvidence(
            study=point.study, method=point.method, format=point.format, width=point.width, sparsity=point.sparsity
        )
        seconds = time.perf_counter() - began
        return _record(planned, point, base.seed, replace(told, seed=base.seed), seconds, problem.what)
    with _file(planned, point, base.seed) as file:
        written = saved.save(model, file, planned.entry.name, done)
        again = saved.load(file).to(planned.device)
    right, validation = items.right(again, task.test), items.right(again, task.validation)
    packing = latency.rule(point.format) if "weights" in point.of and latency.packable(base.model) else ""
    timing = packing and planned.options.timed
    timed = latency.measured(planned.entry, base.model, packing, planned.device) if timing else None
    kept = planned.options.save is not None and point.method != CONTROL
    evidence = CompressEvidence(
        study=point.study,
        method=point.method,
        format=point.format,
        width=point.width,
        sparsity=point.sparsity,
        scope=point.scope,
        parts=list(point.of),
        epochs=point.epochs,
        seed=base.seed,
        device=planned.device,
        base=base.sha256,
        data=task.data,
        sizes=task.sizes,
        tf32=task.tf32,
        quick=planned.options.quick,
        accuracy=_share(right),
        validation=_share(validation),
        base_accuracy=_share(base.right),
        right=items.packed(right),
        bits=sum(written.bits.values()),
        bits_by_kind=written.bits,
        base_bits=base.bits,
        file_bytes=written.bytes,
        file=provenance.shown(file) if kept else "",
        latency=timed.packed if timed else None,
        base_latency=timed.before if timed else None,
        simulated="" if packing or point.method == CONTROL else f"no packed kernel computes with {_what(point)}",
        layers=[_layer(path, treatment) for path, treatment in done.items()],
    )
    return _record(planned, point, base.seed, evidence, time.perf_counter() - began)


def _what(point: Point) -> str:
    if point.format:
        return f"{point.format} here" if "weights" in point.of else "inputs alone"
    return "masks" if "weights" in point.of else "dropped activations"


def _share(right: torch.Tensor) -> float:
    return float(right.double().mean())


def _layer(path: str, treatment: Treatment) -> Layer:
    kept = None if treatment.mask is None else float(treatment.mask.double().mean())
    made = Layer(path, kept=kept)
    for part in ("weight", "bias", "input"):
        if (form := getattr(treatment, part)) is not None:
            made = replace(made, **{part: form.name})
    return made


@contextmanager
def _file(planned: Plan, point: Point, seed: int) -> Iterator[Path]:
    """Yield the compressed model's file: the requested one, or a temporary one."""
    wanted = planned.options.save
    if wanted is None or point.method == CONTROL:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "model.safetensors"
        return
    only = planned.total == 2  # the control and this point
    name = f"{wanted.stem}-{point.label},seed={seed}".replace(":", "_").replace(",", "-").replace("=", "")
    yield wanted if only else wanted.with_name(f"{name}{wanted.suffix or '.safetensors'}")


def _record(
    planned: Plan, point: Point, seed: int, evidence: CompressEvidence, seconds: float, diverged: str = ""
) -> Record:
    """`diverged`: why further training gave no model."""
    options = planned.options
    label = [
        point.label,
        f"seed={seed}",
        *[f"tokens={options.tokens}"] * bool(options.tokens),
        *["quick"] * options.quick,
    ]
    smaller = (evidence.base_bits or 0) / max(1, evidence.bits or 0)
    accuracy = evidence.accuracy or 0.0
    change = 100 * (accuracy - (evidence.base_accuracy or 0))
    reason = f"{accuracy:.2%} of {evidence.data}'s test split, {change:+.2f} points; {smaller:.2f} × smaller"
    return Record(
        "compress",
        planned.entry.name,
        ",".join(label),
        Status.FAIL if diverged else Status.PASS,
        diverged or reason,
        planned.options.run,
        evidence.to_dict(),
        _replay(planned, point, seed),
        source=provenance.source_of(planned.entry.file),
        provenance=provenance.provenance(seed),
        seconds=seconds,
    )


def _replay(planned: Plan, point: Point, seed: int) -> str:
    words = ["assay compress", point.study, planned.entry.name]
    if point.study == "quantize":
        words += [f"--format {point.format}"] if point.format else []
        words += [f"--method {point.method}"] if point.method != CONTROL else []
        words += [f"--epochs {point.epochs}"]
    else:
        if point.sparsity is not None:
            words.append(f"--sparsity {point.sparsity:g} --method {point.method} --scope {point.scope}")
        words += [f"--recover {point.epochs}"]
    words += [f"--of {','.join(point.of)}"] if point.of else []
    words += [f"--data {planned.options.data}"] * bool(planned.options.data)
    words += [f"--seeds {seed}"] + [f"--tokens {planned.options.tokens}"] * bool(planned.options.tokens)
    return " ".join(words + ["--quick"] * planned.options.quick)
