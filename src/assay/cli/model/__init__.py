"""`assay model`: kernels inside models. Each subcommand is a file of this folder."""

from __future__ import annotations

import typer

from assay.cli.model import attention, compile, fetch, infer, train

app = typer.Typer(no_args_is_help=True, help="Kernels inside models: train, infer, compile, attention.")
app.command("fetch")(fetch.fetch)
app.command("train")(train.train)
app.command("infer")(infer.infer)
app.command("compile")(compile.compile_)
app.command("attention")(attention.attention)
