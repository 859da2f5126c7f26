"""A terminal that wraps between words and never inside one: a path or a command that was cut is of no use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def console(stderr: bool = False) -> Console:
    from rich.console import Console

    class Whole(Console):
        """`soft_wrap=True` prints a line as one, however long."""

        def print(self, *objects: Any, **how: Any) -> None:
            if how.get("soft_wrap") or not all(isinstance(o, str) for o in objects):
                super().print(*objects, **how)
                return
            texts = [wrapped(o, self.width) for o in objects]
            whole: dict[str, Any] = {"crop": False, "no_wrap": True, "overflow": "ignore"}
            super().print(*texts, **whole | how)

    return Whole(stderr=stderr, highlight=False)


def wrapped(markup: str, width: int) -> Text:
    """The text in lines of at most `width` columns; a longer word has a line of its own."""
    from rich.cells import cell_len
    from rich.text import Text

    lines: list[Text] = []
    for line in Text.from_markup(markup).split("\n", allow_blank=True):
        breaks, used = [], 0
        for word in re.finditer(r"^\s*\S*\s*|\S+\s*", line.plain):
            if used and used + cell_len(word[0].rstrip()) > width:
                breaks.append(word.start())
                used = 0
            used += cell_len(word[0])
        lines += line.divide(breaks) if breaks else [line]
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)
