"""Parses declarations: registers, variables, parameters and pragmas."""

from collections.abc import Iterator
from dataclasses import replace

from assay.isa.ptx.cursor import Cursor, Stream
from assay.isa.ptx.declarations import Pointer, Registers, Variable
from assay.isa.ptx.types import is_space, is_type, vector


def registers(c: Cursor, block: int) -> list[Registers]:
    """Parse `.reg .b32 %r<20>, other`."""
    c.take()
    length, type_ = 1, ""
    while (token := c.peek()).startswith("."):
        if is_type(token[1:]):
            type_ = token[1:]
        elif token in (".v2", ".v4"):
            length = vector((token[1:],))
        else:
            raise c.fail("a register's type")
        c.take()
    if not type_:
        raise c.fail("a register's type")

    def declared() -> Registers:
        name, count = c.name("a register's name"), None
        if c.accept("<"):
            count = c.number("how many registers")
            c.expect(">")
        return Registers(type_, name, count, length, block, c.line)

    declarations = c.separated(declared)
    c.finish()
    return declarations


def variables(c: Cursor, linkage: str, block: int) -> Iterator[Variable]:
    """Parse `.global .align 4 .u32 a = 5, b[4] = {1, 2, 3, 4}`."""
    first = _variable(c, linkage, block)
    yield _initialised(c, first)
    while c.accept(","):
        name = c.name("a variable's name")
        yield _initialised(c, replace(first, name=name, shape=_shape(c)))
    c.finish()


def parameters(c: Cursor) -> tuple[Variable, ...]:
    """Parse `(.param .u64 .ptr .global .align 16 a, .param .b8 b[24])`; empty without parentheses."""
    if not c.accept("(") or c.accept(")"):
        return ()
    variables = c.separated(lambda: _variable(c, "", 0))
    c.expect(")", " or ','")
    return tuple(variables)


def pragmas(stream: Stream) -> list[str]:
    """Parse `.pragma "nounroll", "…";`."""
    stream.take()
    statement = stream.statement()
    texts = list[str]()
    while statement.peek():
        texts.append(statement.string("a pragma in quotes"))
        statement.accept(",")
    return texts


def group(c: Cursor) -> str:
    """Take a parenthesised group and return its content."""
    c.expect("(")
    depth, tokens = 1, list[str]()
    while depth:
        token = c.take()
        if token in ("", ";"):
            raise c.fail("')'")
        depth += (token == "(") - (token == ")")
        tokens.append(token)
    return "".join(tokens[:-1]).removeprefix(".")


def _variable(c: Cursor, linkage: str, block: int) -> Variable:
    """Parse one variable with its shape, but without its initialiser."""
    line, space, type_, align, length = c.line, "", "", 0, 1
    pointer: Pointer | None = None
    attributes = list[str]()
    while (token := c.peek()).startswith("."):
        word = token[1:]
        c.take()
        if word == "align":
            number = c.number("an alignment")
            if pointer:
                pointer = Pointer(pointer.space, number)
            else:
                align = number
        elif word == "ptr":
            pointer = Pointer("", 0)
        elif word == "attribute":
            attributes.append(group(c))
        elif word in ("v2", "v4", "v8"):
            length = vector((word,))
        elif is_space(word):
            if pointer:
                pointer = Pointer(word, pointer.align)
            else:
                space = word
        elif is_type(word):
            type_ = word
        else:
            c.at -= 1
            raise c.fail("a type, a space or an alignment")
    if not type_ or not space:
        raise c.fail("a type" if space else "a space such as .param")
    name = c.name("a variable's name")
    return Variable(space, type_, name, align, length, _shape(c), "", linkage, pointer, tuple(attributes), block, line)


def _shape(c: Cursor) -> tuple[int, ...]:
    lengths = list[int]()
    while c.accept("["):
        lengths.append(0 if c.peek() == "]" else c.number("an array's length"))
        c.expect("]")
    return tuple(lengths)


def _initialised(c: Cursor, variable: Variable) -> Variable:
    if not c.accept("="):
        return variable
    start, depth = c.at, 0
    while (token := c.peek()) and (depth or token != ","):
        depth += (token in "{(") - (token in "})")
        c.take()
    if start == c.at or depth:
        raise c.fail("an initialiser")
    return replace(variable, initialiser="".join(c.tokens[start : c.at]).replace(",", ", "))
