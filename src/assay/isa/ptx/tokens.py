"""Splits PTX into tokens. Any text has tokens: the parser reports what is wrong with it."""

import re
from collections.abc import Iterator

from assay.isa.ptx.numbers import NUMBER

NAME = re.compile(r"%[\w$]+|[A-Za-z_$][\w$]*", re.ASCII)
_TOKEN = re.compile(
    rf"""//.* | "[^"]*" | {NUMBER}
  | (?:%[\w$]+|[A-Za-z_$][\w$]*)(?:(?:\.|::)[\w$]+)*    # a name; an opcode with its modifiers
  | \.[A-Za-z_][\w$]*(?:::\w+)*                         # a directive, a type, a space
  | <<|>> | \S""",
    re.ASCII | re.VERBOSE,
)
_STRING_OR_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*[\s\S]*?(?:\*/|(?P<open>\Z))')


def split(line: str) -> list[str]:
    """The tokens of one line; a `//` comment is the last of them."""
    return _TOKEN.findall(line)


def code_tokens(line: str) -> list[str]:
    """The tokens of one line without its comment. A line that begins with # is for the preprocessor: it has none."""
    tokens = split(line)
    if tokens and tokens[-1].startswith("//"):
        tokens.pop()
    return tokens if tokens and tokens[0] != "#" else []


def tokens(text: str) -> Iterator[str]:
    """The tokens of a whole text, without comments."""
    for line in without_comments(text)[0].split("\n"):
        yield from code_tokens(line)


def without_comments(text: str) -> tuple[str, int]:
    """The text without `/* */`, every other character on the line where it was; and the line on which a comment begins
    that never ends, or 0. Such a comment reaches to the end of the text."""
    opened = 0

    def blank(match: re.Match[str]) -> str:
        nonlocal opened
        if match["open"] is not None:
            opened = text.count("\n", 0, match.start()) + 1
        return " " + "\n" * match[0].count("\n") if match[0].startswith("/*") else match[0]

    return (_STRING_OR_COMMENT.sub(blank, text) if "/*" in text else text), opened
