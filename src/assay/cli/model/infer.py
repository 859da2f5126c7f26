"""`assay model infer`: what kernels buy inside a model, beside what they promise alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import check as checking
from assay.cli import screen

if TYPE_CHECKING:
    from assay.models.infer import Trained
    from assay.record import Record

Model = Annotated[str, typer.Argument(help="mnist-cnn, mnist-cnn-ln, minilm, … or module:function of your own.")]
Batches = Annotated[str, typer.Option("--batch", help="Sizes: 1,16,64.")]
DType = Annotated[str, typer.Option("--dtype", help="fp32, bf16 or fp16.")]
Device = Annotated[str, typer.Option("--device", help="cuda or cpu; default: the GPU where there is one.")]
Arms = Annotated[str, typer.Option("--arm", help="eager,compiled,graphed; default: all.")]
Variants = Annotated[str, typer.Option("--variant", help="torch,triton,cuda:inline_ptx,triton+fused,swap or all.")]
Swap = Annotated[
    list[str] | None, typer.Option("--swap", help="A variant of your own: gelu=gelu/triton. May be repeated.")
]
Activation = Annotated[str, typer.Option("--activation", help="gelu, relu or silu, where the model has a choice.")]
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
Backend = Annotated[str, typer.Option("--backend", help="Of torch.compile: inductor, aot_eager or eager.")]
Rounds = Annotated[int, typer.Option("--rounds", min=6, help="Each takes every arm, with and without the kernels.")]
Budget = Annotated[float, typer.Option("--budget", min=0, help="Seconds for each arm and batch; default: by device.")]
Threads = Annotated[int, typer.Option("--threads", min=0, help="On the CPU; 0: as torch chooses.")]
Seed = Annotated[int, typer.Option("--seed", help="Of inputs, and of weights where there are no others.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds for one question to one process.")]
Html = Annotated[Path | None, typer.Option("--html", help="Latency over batches and savings by site, as a page.")]
Png = Annotated[Path | None, typer.Option("--png", help="The same as a picture (.png or .svg).")]


def infer(
    model: Model,
    batch: Batches = "",
    dtype: DType = "fp32",
    device: Device = "",
    arm: Arms = "",
    variant: Variants = "",
    swap: Swap = None,
    activation: Activation = "",
    attention: Attention = "",
    weights: Weights = None,
    score: Score = None,
    alone: Alone = "",
    backend: Backend = "inductor",
    rounds: Rounds = 10,
    budget: Budget = 0.0,
    threads: Threads = 0,
    timeout: Timeout = 600.0,
    seed: Seed = 0,
    json: checking.AsJson = False,
    out: checking.Out = None,
    html: Html = None,
    png: Png = None,
    strict: checking.Strict = False,
) -> None:
    """The same weights through every backend: each kernel alone, in the model, and what the model gained by it."""
    from assay.bench.sweep import axis_values
    from assay.cli.model.infer_tables import show
    from assay.cli.model.train import rules
    from assay.models.infer import Effort, Options, plan, run
    from assay.models.infer.options import ARMS, BATCHES

    sizes = tuple(axis_values(batch)) if batch else BATCHES
    chosen = {"activation": activation, "attention": attention}
    options = Options(
        batches=sizes, dtype=dtype, device=device, arms=checking.split(arm) or tuple(ARMS),
        variants=checking.split(variant), swap=rules(swap or ()), options={k: v for k, v in chosen.items() if v},
        weights=weights, score=score, alone=_alone(alone, sizes), backend=backend, timeout=timeout,
        effort=Effort(rounds=rounds, budget=budget, threads=threads, seed=seed), trained=_trained(model),
    )  # fmt: skip
    about: dict[str, Any] = {"verb": "model", "study": "infer", "run": options.run}
    done: list[Record] = []

    def save(kept: list[Record]) -> None:
        if out:
            screen.write_document(kept, out, **about, interrupted=True)

    with screen.progress(1, f"infer {model}", json) as tick:
        planned = plan(model, options, lambda text: tick(text, 0))
    with screen.progress(planned.measurements, f"infer {model}", json) as tick:
        records, interrupted = screen.drain(run(planned, lambda text: tick(text, len(done))), done, None, save)
    if out:
        screen.write_document(records, out, **about, interrupted=interrupted)
    pictures = draw(records, html, png)
    if json:
        screen.write_document(records, **about, interrupted=interrupted)
    else:
        show(records, screen.console())
        checking.report(records, interrupted, out)
        for file in pictures:
            screen.console().print(f"chart: {file}", soft_wrap=True)
    sys.exit(screen.exit_code(records, strict, interrupted))


def _alone(text: str, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    from assay.bench.sweep import axis_values

    if text in ("", "none", "all"):
        return {"": None, "none": (), "all": sizes}[text]
    return tuple(axis_values(text))


def _trained(model: str) -> tuple[Trained, ...]:
    """What the store knows of trainings of this model; nothing where there is no store."""
    import os

    from assay.errors import AssayError
    from assay.models.infer import Trained
    from assay.store import open_store

    if os.environ.get("ASSAY_STORE") == "none":
        return ()
    try:
        with open_store(create=False) as store:
            found = list(store.records(verb="model", kernel=model, status="pass"))
    except (AssayError, OSError):
        return ()
    told = [(r, r.evidence) for r in found if r.workload.startswith("train ") and "seconds_per_epoch" in r.evidence]
    return tuple(
        Trained(e["config"]["swap"], e["config"]["device"], e["seconds_per_epoch"], e["config"]["batch"], r.run)
        for r, e in told
        if not e["config"].get("images")
    )


def draw(records: list[Record], *files: Path | None) -> list[Path]:
    wanted = [file for file in files if file]
    if not wanted:
        return []
    from assay.report.charts import Figure, infer
    from assay.report.single import save

    figure = Figure("infer", infer.TITLE, infer.CAPTION, infer.draw)
    return [written for file in wanted for written in save(figure, records, file)]
