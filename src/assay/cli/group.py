"""Verbs that have subcommands and are commands themselves.

`assay inspect diff …` runs the subcommand, `assay inspect gelu/triton` the verb. The words of subcommands are reserved
as the first argument: a file of such a name is reached as `./diff`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from assay.cli.command import Command

OWN = "."
"""The name under which a group holds the verb itself."""


class _Own(Command):
    def format_usage(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.command_path.rstrip(), " ".join(self.collect_usage_pieces(ctx)))


class Summaries(TyperGroup):
    """A group whose `--help` shows the whole summary of each command: the first paragraph of its docstring."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        named = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, _summary(command)) for name, command in named if command is not None and not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _summary(command: Any) -> str:
    return " ".join((command.help or "").partition("\n\n")[0].split())


class VerbGroup(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = [OWN, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return ("" if name == OWN else name), command, rest


def verb_app(verb: Callable[..., None], *subcommands: Callable[..., None]) -> typer.Typer:
    """Return an app of a verb and its subcommands. The verb's own docstring names them: it is what `--help` shows."""
    summary = (verb.__doc__ or "").partition("\n\n")[0]
    app = typer.Typer(cls=VerbGroup, add_completion=False, rich_markup_mode=None, help=summary)
    app.command(OWN, cls=_Own)(verb)
    for command in subcommands:
        app.command(command.__name__, cls=Command)(command)
    return app
