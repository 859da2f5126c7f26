"""The `assay` command. Each verb's file is imported only when that verb is called, so that `--help` is instant."""

from __future__ import annotations

import signal
import sys
from importlib import import_module

import typer

from assay.cli.screen import error

app = typer.Typer(
    name="assay", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="A workbench for GPU kernels: is it right, how fast is it against the limit, why, and does it matter?",
)  # fmt: skip
VERBS = (
    "doctor", "list", "check", "bench", "inspect", "compare", "history", "machine", "model", "report", "run",
    "selftest",
)  # fmt: skip

for _verb in VERBS:
    _module = import_module(f"assay.cli.{_verb if _verb != 'list' else 'listing'}")
    if hasattr(_module, "app"):
        app.add_typer(_module.app, name=_verb)
    else:
        app.command(_verb)(getattr(_module, _verb if _verb != "list" else "list_"))


def main() -> None:
    """Exit codes: 0 nothing failed, 1 something did, 2 wrong use."""
    from assay.errors import AssayError

    # Being told to end is like Ctrl-C: what was done is kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except AssayError as problem:
        error(problem)
        sys.exit(2)
