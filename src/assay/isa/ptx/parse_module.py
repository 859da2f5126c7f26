"""Parses a module, directive by directive."""

import re
from collections.abc import Iterable
from itertools import pairwise

from assay.errors import SourceError
from assay.isa.ptx import parse_declarations as declarations
from assay.isa.ptx.cursor import Stream
from assay.isa.ptx.declarations import Registers, Variable
from assay.isa.ptx.instruction import Instruction
from assay.isa.ptx.module import Function, Module
from assay.isa.ptx.numbers import literal
from assay.isa.ptx.operands import MODULE, Label, Register, Symbol
from assay.isa.ptx.parse_body import Body, with_labels
from assay.isa.ptx.scope import Scope, UndeclaredScope
from assay.isa.ptx.types import LINKAGE, is_space


def read(text: str) -> Module:
    """Parse a PTX text. Raise SourceError if it is not PTX or uses something unknown."""
    if not text.strip():
        raise SourceError("the PTX is empty", fix="it begins with .version, .target and .address_size")
    return _Reader(Stream(text)).module()


def read_instruction(text: str, names: Iterable[Register | Symbol | Label] = ()) -> Instruction:
    """Parse one instruction without the code around it, so that `read_instruction(i.text, i.names) == i`. `names`
    declares names that the text alone does not explain: otherwise a name that begins with % is a register of block 0,
    and any other name is a symbol."""
    names = tuple(names)
    stream, scope = Stream(text.strip().removesuffix(";") + ";"), UndeclaredScope()
    for name in names:
        if isinstance(name, Register):
            scope.declare(Register(name.name, name.block))
        elif isinstance(name, Symbol):
            scope.declare(Symbol(name.name, name.block))
    body = Body(stream, scope)
    body.instruction(stream.peek())
    if stream.peek() or not body.instructions:
        raise stream.fail("one instruction and no more")
    labels = {n.name: n for n in names if isinstance(n, Label)}
    return with_labels(body.instructions[0], lambda label, _: labels.get(label.name, label))


class _Reader:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.files: dict[int, str] = {}
        self.globals: list[Variable] = []
        self.functions: list[Function] = []
        self.strings: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.pragmas: list[str] = []

    def module(self) -> Module:
        stream = self.stream
        stream.expect(".version", ", with which every PTX begins")
        version = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", stream.peek())
        if version is None:
            raise stream.fail("a version such as 9.0")
        stream.take()
        stream.expect(".target", " after .version")
        target, *options = stream.names("a name such as sm_90 or debug")
        size = stream.number("32 or 64") if stream.accept(".address_size") else 32
        while token := stream.peek():
            self._directive(token)
        return Module(
            (int(version[1]), int(version[2])),
            target,
            tuple(options),
            size,
            self.files,
            tuple(self.globals),
            tuple(self.functions),
            self.strings,
            self.aliases,
            tuple(self.pragmas),
        )

    def _directive(self, token: str) -> None:
        stream = self.stream
        linkage = stream.take()[1:] if token in LINKAGE else ""
        token = stream.peek()
        if token in (".entry", ".func"):
            self.functions.append(self._function(linkage))
        elif token[:1] == "." and is_space(token[1:]):
            self.globals += declarations.variables(stream.statement(), linkage, MODULE)
        elif linkage:
            raise stream.fail(f"a function or a variable after .{linkage}")
        elif token == ".pragma":
            self.pragmas += declarations.pragmas(stream)
        elif stream.accept(".file"):
            index = stream.number("a file's number")
            self.files[index] = stream.string("a file's name in quotes")
            while stream.accept(","):
                stream.number("the file's time or size")
        elif stream.accept(".section"):
            self._section()
        elif stream.accept(".alias"):
            name = stream.name("a function")
            stream.expect(",")
            self.aliases[name] = stream.name("a function")
            stream.expect(";")
        elif stream.accept(".target"):
            stream.names("a name such as sm_90 or debug")
        else:
            raise stream.fail("a function, a variable or another directive of a module")

    def _section(self) -> None:
        """Keep only .debug_str, whose strings are the function names of .loc."""
        stream = self.stream
        name = stream.take()
        stream.expect("{", " after .section's name")
        data, labels, before, bytes_ = bytearray(), list[tuple[str, int]](), "", False
        for token in stream.statement("}").tokens:
            if token == ":":
                labels.append((before, len(data)))
            elif token[0] == ".":
                bytes_ = token == ".b8"
            elif bytes_ and len(token) < 4 and isinstance(value := literal(token), int):
                data.append(value & 255)
            before = token
        if name == ".debug_str":
            for (label, start), (_, end) in pairwise([*labels, ("", len(data))]):
                self.strings[label] = data[start:end].split(b"\0", 1)[0].decode(errors="replace")

    def _function(self, linkage: str) -> Function:
        stream = self.stream
        kind, line = stream.take()[1:], stream.line
        if stream.accept(".attribute"):
            declarations.group(stream)
        returns = declarations.parameters(stream) if kind == "func" else ()
        name = stream.name("a function's name")
        params = declarations.parameters(stream)
        directives, pragmas = dict[str, tuple[int, ...]](), list[str]()
        while (token := stream.peek()) not in ("{", ";"):
            if token == ".pragma":
                pragmas += declarations.pragmas(stream)
            elif stream.accept(".attribute"):
                declarations.group(stream)
            elif token.startswith("."):
                stream.take()
                numbered = isinstance(literal(stream.peek()), int)
                directives[token[1:]] = tuple(stream.separated(lambda: stream.number("a number")) if numbered else ())
            else:
                raise stream.fail("'{', ';' or a directive after a function's parameters")
        stream.take()
        head = (name, kind, linkage, returns, params, directives)
        if token == ";":
            return Function(*head, tuple(pragmas), line, False)
        body = Body(stream, Scope())
        for p in (*returns, *params):
            if p.space == "reg":
                body.registers.append(Registers(p.type, p.name, None, p.vector, 0, p.line))
                body.scope.declare(Register(p.name, 0))
            else:
                body.scope.declare(Symbol(p.name, 0))
        body.read()
        return Function(
            *head,
            (*pragmas, *body.pragmas),
            line,
            True,
            tuple(body.registers),
            tuple(body.variables),
            tuple(body.instructions),
            body.labels,
            body.targets,
            body.prototypes,
            tuple(body.blocks),
        )
