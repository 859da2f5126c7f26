"""`assay model`: kernels inside models. Each subcommand is a file of this folder; one that is not there is left out."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import typer

app = typer.Typer(no_args_is_help=True, help="Kernels inside models: train, infer, compile, attention.")
SUBCOMMANDS = ("fetch", "train", "infer", "compile", "attention")

for _name in SUBCOMMANDS:
    if find_spec(f"{__name__}.{_name}"):
        _module = import_module(f"{__name__}.{_name}")
        # A name that Python has for itself is written with an underscore: compile_.
        app.command(_name)(getattr(_module, f"{_name}_", None) or getattr(_module, _name))
