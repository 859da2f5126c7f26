"""`assay model infer`: what kernels gain inside a model, beside their times by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import options as common
from assay.cli import screen
from assay.cli.model import options as shared
from assay.cli.model.study import Ending, finish

if TYPE_CHECKING:
    from assay.models.studies.infer import Trained
    from assay.record import Record

Model = Annotated[str, typer.Argument(help="mnist-cnn, mnist-cnn-ln, minilm, … or module:function of your own.")]
Batches = Annotated[str, typer.Option("--batch", help="Sizes: 1,16,64; default: up to 1024, by their time.")]
Arms = Annotated[str, typer.Option("--arm", help="How the model is run: eager,compiled,graphed; default: all.")]
Variants = Annotated[str, typer.Option("--variant", help="torch,triton,cuda:inline_ptx,triton+fused,swap or all.")]
Swap = Annotated[
    list[str] | None, typer.Option("--swap", help="A variant of your own: gelu=gelu/triton. May be repeated.")
]
Attention = Annotated[str, typer.Option("--attention", help="sdpa or eager, where the model has a choice.")]
Weights = Annotated[
    Path | None, typer.Option("--weights", help="A file; default: trained or published ones, else random ones.")
]
Score = Annotated[
    bool | None, typer.Option("--score/--no-score", help="Accuracy of each variant; default: if the data is here.")
]
Alone = Annotated[
    str, typer.Option("--alone", help="Batch sizes to time kernels alone at: 16,64, all or none; default: both ends.")
]
Rounds = Annotated[int, typer.Option("--rounds", min=6, help="Each takes every arm, with and without the kernels.")]
Budget = Annotated[float, typer.Option("--budget", min=0, help="Seconds for each arm and batch; default: by device.")]
Seed = Annotated[int, typer.Option("--seed", help="Of inputs, and of weights where there are no others.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds for one question to one process.")]
Html = Annotated[Path | None, typer.Option("--html", help="The tables and charts as a page of its own.")]


def infer(
    model: Model,
    batch: Batches = "",
    dtype: shared.DType = "fp32",
    device: common.Device = "",
    arm: Arms = "",
    variant: Variants = "",
    swap: Swap = None,
    activation: shared.Activation = "",
    attention: Attention = "",
    weights: Weights = None,
    score: Score = None,
    alone: Alone = "",
    backend: shared.Backend = "inductor",
    rounds: Rounds = 10,
    budget: Budget = 0.0,
    threads: shared.Threads = 0,
    timeout: Timeout = 600.0,
    seed: Seed = 0,
    json: common.AsJson = False,
    out: common.Out = None,
    html: Html = None,
    png: shared.Png = None,
    strict: common.Strict = False,
) -> None:
    """The same weights through every backend: each kernel by itself and in the model, and what the model gained."""
    from assay.bench.sweep import axis_values
    from assay.models.studies.infer import Effort, Options, plan, run
    from assay.models.studies.infer.planning import ARMS
    from assay.models.studies.infer.sizes import USUAL

    ending = Ending(json, out, (html, png), strict)
    ending.check()
    sizes = tuple(axis_values(batch)) if batch else ()
    chosen = {"activation": activation, "attention": attention}
    options = Options(
        batches=sizes,
        dtype=dtype,
        device=device,
        arms=common.split(arm) or tuple(ARMS),
        variants=common.split(variant),
        swap=shared.rules(swap or ()),
        options={k: v for k, v in chosen.items() if v},
        weights=weights,
        score=score,
        alone=_alone(alone, sizes or USUAL),
        backend=backend,
        timeout=timeout,
        effort=Effort(rounds=rounds, budget=budget, threads=threads, seed=seed),
        trained=_trained(model),
    )
    with screen.progress(None, f"infer {model}", json, "planning", late=True) as tick:
        planned = plan(model, options, lambda text: tick(text, 0))
    finish(
        "infer",
        lambda tick: run(planned, tick),
        planned.measurements,
        ending,
        run=options.run,
        show=show,
        title=f"infer {model}",
        figure="models",
    )


def show(records: Sequence[Record], terminal: Any) -> None:
    from assay.report.model_infer import parts

    screen.print_parts(parts(records), terminal)


def _alone(text: str, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    from assay.bench.sweep import axis_values

    if text in ("", "none", "all"):
        return {"": None, "none": (), "all": sizes}[text]
    return tuple(axis_values(text))


def _trained(model: str) -> tuple[Trained, ...]:
    """Return the trainings of this model in the store; none if there is no store."""
    import os

    from assay.errors import AssayError
    from assay.evidence import at
    from assay.models.studies.infer import Trained
    from assay.models.studies.train.evidence import TrainEvidence
    from assay.store import open_store

    if os.environ.get("ASSAY_STORE") == "none":
        return ()
    try:
        with open_store(create=False) as store:
            records = list(store.records(verb="model", kernel=model, status="pass"))
    except (AssayError, OSError):
        return ()
    # Only trainings on whole splits; older records call `items` `images`.
    whole = [r for r in records if r.workload.startswith("train ") and not at(r.evidence, "config.images")]
    trainings = [(r.run, TrainEvidence.of(r)) for r in whole]
    return tuple(
        Trained(e.config.swap, e.config.device, e.seconds_per_epoch, e.config.batch, run)
        for run, e in trainings
        if e.seconds_per_epoch and not e.config.items
    )
