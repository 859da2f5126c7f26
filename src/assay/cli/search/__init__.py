"""`assay search`: the best precision of each layer, the best architecture. Each subcommand is a file of this folder."""

from __future__ import annotations

import typer

from assay.cli.command import Command
from assay.cli.group import Summaries
from assay.cli.search import architecture, precision, sensitivity

app = typer.Typer(
    cls=Summaries,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Better models, chosen by measurement: precision, architecture, sensitivity.",
)
app.command("precision", cls=Command)(precision.precision)
app.command("architecture", cls=Command)(architecture.architecture)
app.command("sensitivity", cls=Command)(sensitivity.sensitivity)
