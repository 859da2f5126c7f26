"""`assay search precision`: how many bits does each layer need?"""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli import options as common
from assay.cli.compress.options import Html, Png, integers
from assay.cli.search import options as shared
from assay.cli.search.study import finish

Formats = Annotated[
    str, typer.Option("--format", help="fixed, int, log, bfp, or int:W:group=128; several: a study for each.")
]
Widths = Annotated[str, typer.Option("--width", help="2,4,8: bits that may be chosen, from 2 to 32.")]
Offsets = Annotated[
    str, typer.Option("--offsets", help="-1,0,1: added to the fraction that fits best, as a knob of each tensor.")
]
Of = Annotated[str, typer.Option("--of", help="weights,inputs.")]
Epochs = Annotated[int, typer.Option("--epochs", min=0, help="Of training in each trial (QAT); 0: none (PTQ).")]
Points = Annotated[float, typer.Option("--points", help="Of accuracy that may be lost; negative: any number.")]
Seeded = Annotated[
    bool, typer.Option("--seed-by-sensitivity", help="Begin with each layer alone; its evaluations count as trials.")
]


def precision(
    model: shared.Model = "mnist-cnn",
    trials: shared.Trials = 30,
    sampler: shared.Sampler = "tpe",
    format: Formats = "fixed",
    width: Widths = "2,3,4,5,6,7,8",
    offsets: Offsets = "0",
    of: Of = "weights,inputs",
    epochs: Epochs = 0,
    goal: shared.Goal = "bits",
    points: Points = 0.5,
    seed_by_sensitivity: Seeded = False,
    seeds: shared.Seeds = "0",
    quick: shared.Quick = False,
    tokens: shared.Tokens = 0,
    workers: shared.Workers = None,
    ray: shared.Ray = "",
    timeout: shared.Timeout = 3600.0,
    memory: shared.Memory = 0.0,
    storage: shared.Storage = "",
    study: shared.Name = "",
    restart: shared.Restart = False,
    save: shared.Save = None,
    device: common.Device = "",
    json: common.AsJson = False,
    out: common.Out = None,
    html: Html = None,
    png: Png = None,
) -> None:
    """How few bits can each layer have? A width for the weights and the inputs of each, chosen on the validation split;
    the test split is read once, for the winner."""
    from assay.search.options import Precision
    from assay.search.planning import precision as planned

    options = Precision(
        trials=trials,
        sampler=sampler,
        formats=common.split(format),
        widths=integers(width, "width"),
        offsets=integers(offsets, "offsets"),
        of=common.split(of),
        epochs=epochs,
        goals=common.split(goal),
        points=points if points >= 0 else None,
        seed_by_sensitivity=seed_by_sensitivity,
        seeds=integers(seeds, "seeds"),
        quick=quick,
        tokens=tokens,
        workers=workers,
        ray=ray,
        timeout=timeout,
        memory=memory,
        storage=storage,
        study=study,
        restart=restart,
        save=save,
        device=device,
    )
    finish(planned(model, options), json, out, (html, png))
