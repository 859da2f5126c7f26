"""Options that both studies take, and the parsing of their lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.errors import UsageError

Model = Annotated[
    str, typer.Argument(help="mnist-cnn, mnist-cnn-ln, bert-tiny, minilm-imdb, or yours: path/file.py:function.")
]
Data = Annotated[
    str, typer.Option("--data", help="mnist, fashion-mnist, imdb or imdb-official; default: the model's own.")
]
Seeds = Annotated[str, typer.Option("--seeds", help="0,1,2: each its own base model and curve.")]
Quick = Annotated[bool, typer.Option("--quick", help="On a part of the data, from a base model of few epochs.")]
Tokens = Annotated[int, typer.Option("--tokens", min=0, help="Of each text, at most; default: all.")]
Save = Annotated[
    Path | None, typer.Option("--save", help="Keep the compressed model there; assay.load(FILE) gives it back.")
]
Html = Annotated[Path | None, typer.Option("--html", help="Also write a page with the curve and the tables.")]
Png = Annotated[Path | None, typer.Option("--png", help="Also draw the curve: .png or .svg.")]


def numbers(text: str, name: str) -> tuple[float, ...]:
    """Parse a list of numbers: `4,8,16`."""
    try:
        return tuple(float(word) for word in text.split(",") if word.strip())
    except ValueError:
        raise UsageError(f"--{name} {text}: not a list of numbers", fix=f"write --{name} 4,8,16") from None


def integers(text: str, name: str) -> tuple[int, ...]:
    values = numbers(text, name)
    if any(value != int(value) for value in values):
        raise UsageError(f"--{name} {text}: not a list of integers", fix=f"write --{name} 4,8,16")
    return tuple(map(int, values))
