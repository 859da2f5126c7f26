"""A position in a sequence of tokens, and the errors that report it."""

from collections.abc import Callable
from typing import TypeVar

from assay.errors import SourceError
from assay.isa.ptx.numbers import literal
from assay.isa.ptx.tokens import NAME, code_tokens, without_comments

T = TypeVar("T")


def error(line: int, what: str) -> SourceError:
    return SourceError(what, where=f"PTX line {line}")


def unexpected(line: int, expected: str, token: object) -> SourceError:
    """Return the error for a token found where another was expected; an empty token means the end of the text."""
    shown = str(token)
    return error(line, f"expected {expected}, found " + (f"'{shown[:40]}'" if shown else "the end of the text"))


class Cursor:
    """The tokens of one statement. Past the last one it returns empty tokens."""

    end = ";"
    """The text that follows the last token."""

    def __init__(self, tokens: list[str], line: int) -> None:
        self.tokens, self.line, self.at = tokens, line, 0

    def peek(self) -> str:
        try:
            return self.tokens[self.at]
        except IndexError:
            return self._refill()

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        """Take the next token if it is `token`, and return whether it was."""
        matches = self.peek() == token
        self.at += matches
        return matches

    def expect(self, token: str, after: str = "") -> None:
        if not self.accept(token):
            raise self.fail(f"'{token}'{after}")

    def name(self, what: str) -> str:
        if not NAME.fullmatch(self.peek()):
            raise self.fail(what)
        return self.take()

    def separated(self, read: Callable[[], T]) -> list[T]:
        """Call `read` once, and again after each comma; return the results."""
        items = [read()]
        while self.accept(","):
            items.append(read())
        return items

    def names(self, what: str) -> list[str]:
        return self.separated(lambda: self.name(what))

    def number(self, what: str) -> int:
        value = literal(self.peek())
        if not isinstance(value, int):
            raise self.fail(what)
        self.at += 1
        return value

    def string(self, what: str) -> str:
        """Take a quoted string and return its content."""
        token = self.peek()
        if len(token) < 2 or token[0] != '"':
            raise self.fail(what)
        return self.take()[1:-1]

    def finish(self) -> None:
        """Raise SourceError if any token is left."""
        if self.peek():
            raise self.fail("',' or ';'")

    def fail(self, expected: str) -> SourceError:
        """Return the error to raise if the next token is not the expected one."""
        token = self.peek()
        return unexpected(self.line, expected, token or self.end)

    def _refill(self) -> str:
        """Fetch more tokens and return the first of them; a statement has no more."""
        return ""


class Stream(Cursor):
    """The tokens of a whole text, split one line at a time."""

    end = ""

    def __init__(self, text: str) -> None:
        super().__init__([], 0)
        code, opened = without_comments(text)
        if opened:
            raise unexpected(opened, "the '*/' of this comment", "")
        self._lines = iter(code.split("\n"))

    def statement(self, last: str = ";") -> Cursor:
        """Return the tokens from here to the next `;`, which is consumed as well."""
        line, start = self.line, self.at
        tokens = list[str]()
        while True:
            try:
                end = self.tokens.index(last, start)
            except ValueError:
                tokens += self.tokens[start:]
                if not self._refill():
                    raise unexpected(line, f"a '{last}'", "") from None
                start = 0
                continue
            tokens = tokens + self.tokens[start:end] if tokens else self.tokens[start:end]
            self.at = end + 1
            return Cursor(tokens, line)

    def _refill(self) -> str:
        for text in self._lines:
            self.line += 1
            if tokens := code_tokens(text):
                self.tokens, self.at = tokens, 0
                return tokens[0]
        self.tokens, self.at = [], 0
        return ""
