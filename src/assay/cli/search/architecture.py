"""`assay search architecture`: which shape of a model is the best?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from assay.cli import options as common
from assay.cli.compress.options import Html, Png, integers
from assay.cli.model.options import assignments
from assay.cli.search import options as shared
from assay.cli.search.study import finish

Model = Annotated[str, typer.Argument(help="bert-tiny, or yours with KNOBS beside it: file.py:function.")]
Knobs = Annotated[
    list[str] | None, typer.Option("--knob", help="Search depth, or depth=1,2,4 alone. May be repeated; default: all.")
]
Fixed = Annotated[list[str] | None, typer.Option("--set", help="Do not search it: width=128. May be repeated.")]
Data = Annotated[str, typer.Option("--data", help="mnist, fashion-mnist, imdb or imdb-official; default: the model's.")]
Training = Annotated[int, typer.Option("--training", min=0, help="Epochs of each trial; default: the model's own.")]
Modes = Annotated[
    str, typer.Option("--mode", help="train; compress: then quantised; recover: then trained on. A study for each.")
]
Format = Annotated[str, typer.Option("--format", help="Of what is compressed: int:4:channel, fixed:8:F, mxfp4, …")]
Of = Annotated[str, typer.Option("--of", help="What is compressed: weights,inputs.")]
Recover = Annotated[int, typer.Option("--recover", min=0, help="Epochs of training on, in mode recover.")]
Points = Annotated[
    float, typer.Option("--points", help="Of accuracy below the usual shape that are allowed; negative: any number.")
]


def architecture(
    model: Model = "bert-tiny",
    trials: shared.Trials = 30,
    sampler: shared.Sampler = "tpe",
    knob: Knobs = None,
    set: Fixed = None,
    data: Data = "",
    training: Training = 0,
    mode: Modes = "train",
    format: Format = "int:4:channel",
    of: Of = "weights",
    recover: Recover = 1,
    goal: shared.Goal = "accuracy",
    points: Points = -1.0,
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
    """Which shape of a model is the best? Each trial is built, trained and judged on the validation split; the test
    split is read once, for the winner."""
    from assay.search.options import Architecture
    from assay.search.planning import architecture as planned

    options = Architecture(
        trials=trials,
        sampler=sampler,
        knobs=knobs(knob or ()),
        fixed=assignments(set or ()),
        data=data,
        training=training,
        modes=common.split(mode),
        format=format,
        of=common.split(of),
        recover=recover,
        goals=common.split(goal),
        points=points if points >= 0 else None,
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


def knobs(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Parse `depth=1,2` or `heads` into the values of each knob."""
    return {name.strip(): common.split(values) for name, _, values in (text.partition("=") for text in texts)}
