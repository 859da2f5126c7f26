"""The `assay` command. A verb's file imports its implementation only when it is called, so that `--help` is instant."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli import session
from assay.cli.command import Command
from assay.cli.group import Summaries
from assay.cli.leaving import leave
from assay.cli.screen import error
from assay.cli.stdout import lenient, lost


class InOrder(Summaries):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)


app = typer.Typer(
    name="assay",
    cls=InOrder,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
VERBS = (
    "doctor",
    "list",
    "check",
    "bench",
    "inspect",
    "tune",
    "compare",
    "history",
    "machine",
    "model",
    "compress",
    "search",
    "report",
    "run",
    "selftest",
)


def _version(wanted: bool) -> None:
    if wanted:
        from assay import __version__

        print(f"assay {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
]


@app.callback()
def assay(version: Version = False) -> None:
    """A workbench for GPU kernels: is it right, how fast is it against the limit, why, and does it matter?"""


for _verb in VERBS:
    _module = import_module(f"assay.cli.{_verb if _verb != 'list' else 'listing'}")
    if hasattr(_module, "app"):
        app.add_typer(_module.app, name=_verb)
    else:
        app.command(_verb, cls=Command)(getattr(_module, _verb if _verb != "list" else "list_"))


def main() -> None:
    """Run the command line. Exit codes: 0 nothing failed, 1 something did, 2 wrong use, 3 nothing failed but a file
    that was asked for could not be written, 4 an error of Assay's own, 130 interrupted."""
    # SIGTERM acts like Ctrl-C: what was done is kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    session.begin()
    with lenient() as shown:
        code = _run()
        if session.refused:
            _write_refusals()
        for problem in session.refused:
            error(problem)
        shown.flush()
        if why := lost(shown):
            session.unkept.append("stdout")
            print(f"assay: what was to be shown could not be written: {why}", file=sys.stderr)
    sys.exit(session.exit_code(code))


def program() -> None:
    """Run the command as a process of its own."""
    try:
        main()
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else int(end.code is not None))


def _run() -> int:
    """Run the verb and return its exit code."""
    from assay.errors import AssayError

    try:
        _require_current_folder()
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except AssayError as problem:
        session.refuse([problem])
        return session.WRONG_USE
    except OSError as problem:
        if problem.filename is None:
            return _our_fault(problem)
        what = f"{problem.filename}: {problem.strerror}"
        session.refuse([AssayError(what, fix="check the path, who may use it, and whether there is room")])
        return session.WRONG_USE
    except Exception as problem:
        return _our_fault(problem)
    return 0


def _write_refusals() -> None:
    """Write the documents that a command, refused before it had a record, was asked for: with no record, and with what
    was refused."""
    from assay.cli.check import keep
    from assay.cli.screen import write_document

    asked = dict(session.awaited)
    about: dict[str, Any] = {"verb": session.command.split()[1], "interrupted": False} if asked else {}
    if "json" in asked:
        write_document([], **about)
    keep([], asked.get("out"), asked.get("junit"), "json" in asked, **about)


def _require_current_folder() -> None:
    """Refuse a current folder that was deleted: many packages read it when they are imported."""
    from assay.errors import AssayError

    try:
        Path.cwd()
    except FileNotFoundError:
        raise AssayError("the folder this was started in has been deleted", fix="cd into one that exists") from None


def _our_fault(problem: Exception) -> int:
    """Report an error of Assay's own in a few lines. Only a developer needs the traceback ($ASSAY_TRACE)."""
    if os.environ.get("ASSAY_TRACE"):
        raise problem
    at = problem.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = f" at {Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at is not None else ""
    print(
        f"assay: an error of Assay's own: {type(problem).__name__}: {problem}{where}\n"
        "  → please report it; ASSAY_TRACE=1 shows the whole traceback",
        file=sys.stderr,
    )
    return session.OUR_FAULT
