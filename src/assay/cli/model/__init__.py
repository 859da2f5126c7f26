"""`assay model`: kernels inside models. Each subcommand is a file of this folder."""

from __future__ import annotations

import typer

from assay.cli.command import Command
from assay.cli.group import Summaries
from assay.cli.model import attention, compile, fetch, infer, train

app = typer.Typer(
    cls=Summaries,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Kernels inside models: train, infer, compile, attention.",
)
app.command("fetch", cls=Command)(fetch.fetch)
app.command("train", cls=Command)(train.train)
app.command("infer", cls=Command)(infer.infer)
app.command("compile", cls=Command)(compile.compile_)
app.command("attention", cls=Command)(attention.attention)
