"""A command of a verb. It notes what was typed, and refuses an option given twice: only the last value would count."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from assay.cli import session
from assay.errors import UsageError


class Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        session.command = _typed(ctx)
        order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        for option in order:
            takes_one = option.param_type_name == "option" and not (option.multiple or option.is_flag or option.count)
            if takes_one and order.count(option) > 1:
                name, times = max(option.opts, key=len), order.count(option)
                raise UsageError(f"{name} is given {times} times", fix=f"give {name} once; {_several(option)}")
        return super().parse_args(ctx, args)


def _typed(ctx: Any) -> str:
    """Return what the user typed before the names of kernels: `assay run`, `assay inspect diff`."""
    words = []
    while ctx.parent is not None:
        words.append(ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(["assay", *filter(None, reversed(words))])


def _several(option: Any) -> str:
    """Return how several values are given, as the option's help shows it."""
    example = next((word.rstrip(";.") for word in (option.help or "").split() if "," in word.rstrip(",;.")), "")
    return f"several values are separated by commas: {example}" if example else "it takes one value"
