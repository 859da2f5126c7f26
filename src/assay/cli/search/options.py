"""Options that all searches take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[
    str,
    typer.Argument(
        help="A model with data of its own to be judged on: mnist-cnn, mnist-cnn-ln, bert-tiny, minilm-imdb."
    ),
]
Trials = Annotated[int, typer.Option("--trials", help="That are finished in the end, those of earlier runs included.")]
Sampler = Annotated[str, typer.Option("--sampler", help="tpe, random, grid or nsga2.")]
Seeds = Annotated[str, typer.Option("--seeds", help="0,1,2: each its own base model, sampler and study.")]
Quick = Annotated[bool, typer.Option("--quick", help="On a part of the data, from a base model of few epochs.")]
Tokens = Annotated[int, typer.Option("--tokens", min=0, help="Of each text, at most; default: all.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", help="Trials that run at the same time; default: 1, with --ray as many as fit."),
]
Ray = Annotated[
    str,
    typer.Option("--ray", metavar="ADDRESS", help="Run trials on a Ray cluster: auto, HOST:PORT or ray://HOST:PORT."),
]
Timeout = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds that one trial may take.")]
Memory = Annotated[
    float, typer.Option("--memory", min=0, help="GiB that the process of a trial may have; default: its share.")
]
Storage = Annotated[
    str, typer.Option("--storage", help="Where studies are kept: a file or postgresql://…; default: the data folder.")
]
Name = Annotated[str, typer.Option("--study", help="Its name; default: made of its settings.")]
Restart = Annotated[bool, typer.Option("--restart", help="Begin again: forget the trials that the study has.")]
Goal = Annotated[str, typer.Option("--goal", help="accuracy, bits, weights, latency; several give a Pareto front.")]
Save = Annotated[Path | None, typer.Option("--save", help="Keep the winner there; assay.load(FILE) gives it back.")]
