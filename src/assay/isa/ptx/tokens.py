"""Splits PTX into tokens. Any text has tokens; the parser reports errors."""

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
    """Return the tokens of one line; a `//` comment is the last of them."""
    return _TOKEN.findall(line)


def code_tokens(line: str) -> list[str]:
    """Return the tokens of one line without its comment; none for a preprocessor line, which begins with #."""
    tokens = split(line)
    if tokens and tokens[-1].startswith("//"):
        tokens.pop()
    return tokens if tokens and tokens[0] != "#" else []


def tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a whole text, without comments."""
    for line in without_comments(text)[0].split("\n"):
        yield from code_tokens(line)


def without_comments(text: str) -> tuple[str, int]:
    """Return the text with `/* */` comments removed and all line breaks kept, and the line of an unterminated comment,
    or 0. Such a comment extends to the end of the text."""
    opened = 0

    def blank(match: re.Match[str]) -> str:
        nonlocal opened
        if match["open"] is not None:
            opened = text.count("\n", 0, match.start()) + 1
        return " " + "\n" * match[0].count("\n") if match[0].startswith("/*") else match[0]

    return (_STRING_OR_COMMENT.sub(blank, text) if "/*" in text else text), opened
