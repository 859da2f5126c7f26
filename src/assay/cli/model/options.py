"""Options that several studies take, and the parsing of `--swap` and `--set`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

Activation = Annotated[str, typer.Option("--activation", help="gelu, relu or silu, where the model has a choice.")]
Backend = Annotated[str, typer.Option("--backend", help="Of torch.compile: inductor, aot_eager or eager.")]
DType = Annotated[str, typer.Option("--dtype", help="fp32, bf16 or fp16.")]
Png = Annotated[Path | None, typer.Option("--png", help="The same as a picture (.png or .svg).")]
Threads = Annotated[int, typer.Option("--threads", min=0, help="On the CPU; 0: as torch chooses.")]


def rules(texts: Iterable[str]) -> dict[str, str]:
    """Parse `gelu=gelu/triton` as a rule of `assay.swap`."""
    return _pairs(texts, "--swap", "op=kernel", "gelu=gelu/triton")


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """Parse `depth=4` as an option of the model."""
    return _pairs(texts, "--set", "name=value", "depth=4")


def _pairs(texts: Iterable[str], option: str, form: str, example: str) -> dict[str, str]:
    from assay.errors import UsageError

    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} {text}: not {form}", fix=f"e.g. {option} {example}")
        found[name.strip()] = value.strip()
    return found
