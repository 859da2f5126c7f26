"""`assay model train`: trains a model, with any kernels inside it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import options as common
from assay.cli import screen
from assay.cli.model import options as shared
from assay.cli.model.study import Ending, finish

if TYPE_CHECKING:
    from assay.record import Record

_RECIPE = "default: the model's own"
Model = Annotated[
    str,
    typer.Argument(
        help="mnist-cnn, mnist-cnn-ln, bert-tiny, minilm-imdb, or yours: module:function, file.py:function."
    ),
]
Epochs = Annotated[int | None, typer.Option("--epochs", min=1, help=f"At most so many; {_RECIPE}.")]
Batch = Annotated[int | None, typer.Option("--batch", min=1, help=f"Images or reviews in a step; {_RECIPE}.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the first weights, the order of the data, and dropout.")]
Rate = Annotated[
    float | None, typer.Option("--lr", help=f"The highest learning rate: it rises to it, then falls; {_RECIPE}.")
]
Decay = Annotated[float | None, typer.Option("--weight-decay", help=f"AdamW's; {_RECIPE}.")]
Patience = Annotated[
    int | None, typer.Option("--patience", min=1, help=f"Epochs without gain after which it ends; {_RECIPE}.")
]
Data = Annotated[str, typer.Option("--data", help="mnist, fashion-mnist, imdb or imdb-official; default: the model's.")]
Items = Annotated[
    int, typer.Option("--items", min=0, help="So many images or reviews of each split alone, for a quick try.")
]
Tokens = Annotated[int, typer.Option("--tokens", min=0, help="Where reviews are cut; default: 512.")]
Initial = Annotated[
    Path | None, typer.Option("--initial", help="Weights to start from: of this model, or of its encoder alone.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="An option or a knob of the model: depth=4. May be repeated.")
]
Threads = Annotated[int, typer.Option("--threads", min=0, help="On the CPU; default: all cores.")]
Swap = Annotated[
    list[str] | None, typer.Option("--swap", help="A kernel to train with: gelu=gelu/triton. May be repeated.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint, if there is one.")]
Kept = Annotated[Path | None, typer.Option("--checkpoint", help="That file; default: one in the data folder.")]
Weights = Annotated[
    Path | None, typer.Option("--weights", help="Where the weights go; default: where `infer` looks for them.")
]
Every = Annotated[float, typer.Option("--every", min=0, help="Seconds between checkpoints within an epoch.")]
Target = Annotated[float, typer.Option("--target", min=0, max=1, help="Fail below this test accuracy: 0.99.")]


def train(
    model: Model = "mnist-cnn",
    epochs: Epochs = None,
    batch: Batch = None,
    seed: Seed = 0,
    lr: Rate = None,
    weight_decay: Decay = None,
    patience: Patience = None,
    activation: shared.Activation = "",
    set_: Set = None,
    data: Data = "",
    items: Items = 0,
    tokens: Tokens = 0,
    initial: Initial = None,
    device: common.Device = "",
    threads: Threads = 0,
    swap: Swap = None,
    resume: Resume = False,
    checkpoint: Kept = None,
    weights: Weights = None,
    every: Every = 30.0,
    target: Target = 0.0,
    json: common.AsJson = False,
    out: common.Out = None,
) -> None:
    """Train a model on the training split, choose its best epoch by validation, and judge it once by the test split."""
    from assay.models.studies.train import Options, plan, run

    options = Options(
        epochs=epochs,
        batch=batch,
        seed=seed,
        lr=lr,
        weight_decay=weight_decay,
        patience=patience,
        options={**shared.assignments(set_ or ()), **({"activation": activation} if activation else {})},
        data=data,
        items=items,
        tokens=tokens,
        initial=initial,
        device=device,
        threads=threads,
        swap=shared.rules(swap or ()),
        resume=resume,
        checkpoint=checkpoint,
        weights=weights,
        every=every,
        target=target,
    )
    planned = plan(model, options)
    # Before torch is loaded: threads that wait must not spin, or on a busy machine each step takes twice the CPU time.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    tell = (lambda text: None) if json else (lambda text: print(text, file=sys.stderr))

    def report(records: list[Record], interrupted: bool, out: Path | None) -> None:
        kept = f"add --resume to go on from {planned.checkpoint}" if planned.checkpoint.exists() else "nothing is kept"
        if interrupted and not records:
            screen.console().print(f"interrupted; {kept}", soft_wrap=True)
        elif any("weights" in record.evidence for record in records):
            screen.console().print(f"weights: {planned.weights}", soft_wrap=True)

    finish(
        "train",
        lambda tick: run(planned, tick, tell),
        planned.steps,
        Ending(json, out, (), False),
        run=options.run,
        show=show,
        report=report,
        title=f"train {model}",
    )


def show(records: Iterable[Record], terminal: Any) -> None:
    for record in records:
        _show(record, terminal)


def _show(record: Record, terminal: Any) -> None:
    from rich.markup import escape
    from rich.table import Table

    from assay.models.studies.train.evidence import TrainEvidence

    evidence = TrainEvidence.of(record)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("epoch", "loss", "accuracy", "validation loss", "accuracy", "time"):
        table.add_column(column, justify="right")
    for epoch in evidence.epochs:
        mark = " ←" if epoch.epoch == evidence.best_epoch else "  "
        table.add_row(
            f"{epoch.epoch}",
            f"{epoch.train_loss:.4f}",
            f"{epoch.train_accuracy:.2%}",
            f"{epoch.validation_loss:.4f}",
            f"{epoch.validation_accuracy:.2%}{mark}",
            f"{epoch.seconds:.1f} s",
        )
    if table.row_count:
        terminal.print(table)
    if evidence.swap:
        sites = Counter(f"{site.op} {site.state}" for site in evidence.swap.sites)
        terminal.print("swap: " + escape(", ".join(f"{n} {what}" for what, n in sites.items())))
    peak = evidence.peak_memory
    memory = f"{peak.bytes / 1e6:.0f} MB at most ({peak.of})" if peak else ""
    terminal.print(f"{screen.status_text(str(record.status))}  {escape(record.kernel)}: {escape(record.reason)}")
    terminal.print(f"{record.seconds:.1f} s, {evidence.cpu_seconds or 0.0:.1f} s of CPU time, {memory}")
