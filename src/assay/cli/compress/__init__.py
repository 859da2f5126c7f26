"""`assay compress`: fewer bits, fewer weights. Each subcommand is a file of this folder."""

from __future__ import annotations

import typer

from assay.cli.command import Command
from assay.cli.compress import prune, quantize
from assay.cli.group import Summaries

app = typer.Typer(
    cls=Summaries,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Fewer bits, fewer weights: quantize, prune.",
)
app.command("quantize", cls=Command)(quantize.quantize)
app.command("prune", cls=Command)(prune.prune)
