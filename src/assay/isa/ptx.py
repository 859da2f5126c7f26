"""Reads PTX, the assembly language compilers write for NVIDIA GPUs: text in, functions and typed instructions out."""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod

from assay.errors import SourceError

MODULE = -1
"""The block of names that no function declares: global variables and functions."""

_NUMBER = r"""
    0[fF][0-9a-fA-F]{8}(?!\w) | 0[dD][0-9a-fA-F]{16}(?!\w)
  | 0[xX][0-9a-fA-F]+U? | 0[bB][01]+U?
  | (?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | [0-9]+U?"""
_TOKEN = re.compile(
    rf"""//.* | "[^"]*" | {_NUMBER}
  | (?:%[\w$]+|[A-Za-z_$][\w$]*)(?:(?:\.|::)[\w$]+)*    # a name; an opcode with its modifiers
  | \.[A-Za-z_][\w$]*(?:::\w+)*                         # a directive, a type, a space
  | <<|>> | \S""",
    re.ASCII | re.VERBOSE,
)
_IS_NUMBER = re.compile(_NUMBER, re.ASCII | re.VERBOSE)
_NAME = re.compile(r"%[\w$]+|[A-Za-z_$][\w$]*", re.ASCII)
_OPCODE = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_TYPE = re.compile(
    r"[bus](?:1|2|4|8|16|32|64|128|1024)(?:x[24])?|b(?:8|6|4)x16(?:_p\d+)?|(?:b|t)?f(?:16|32|64)(?:x2)?|u?e\dm\d(?:x[24])?"
    r"|pred|texref|samplerref|surfref",
    re.ASCII,
)
_BITS = re.compile(r"[a-z]+(\d+)(?:x(\d))?", re.ASCII)
_OUTSIDE_CODE = re.compile(r'"[^"\n]*"|//[^\n]*|/\*(?:[\s\S]*?\*/|(?P<open>))')

_SPACES = ("global", "shared", "local", "const", "param", "tex", "sreg", "reg")
_LINKAGE = (".visible", ".extern", ".weak", ".common")
_DEEPEST = 256
"""Blocks within blocks, and callers of inlined code; no compiler comes near."""

_VECTOR_SPECIALS = (
    "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
)  # fmt: skip
_SPECIALS = frozenset(
    [
        "laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid", "is_explicit_cluster", "cluster_ctarank",
        "cluster_nctarank", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "clock",
        "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi", "reserved_smem_offset_begin",
        "reserved_smem_offset_end", "reserved_smem_offset_cap", "total_smem_size", "aggr_smem_size",
        "dynamic_smem_size", "current_graph_exec", *_VECTOR_SPECIALS,
        *(f"{name}.{part}" for name in _VECTOR_SPECIALS for part in "xyzw"),
        *(f"pm{i}{wide}" for i in range(8) for wide in ("", "_64")), *(f"envreg{i}" for i in range(32)),
        *(f"reserved_smem_offset_{i}" for i in range(2)),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Register:
    name: str
    """`%r12`, or any name that a .reg declares: inline PTX calls them `p` and `n`."""
    block: int = 0
    """The block that declares it: the same name in another block is another register."""
    part: str = ""
    """`x` of a vector register, `b0` or `h1` of a scalar one."""
    sign: str = ""
    """`!` or `-` where the instruction takes its opposite."""

    def __str__(self) -> str:
        return f"{self.sign}{self.name}.{self.part}" if self.part else self.sign + self.name


@dataclass(frozen=True, slots=True)
class Special:
    """A register that the machine sets."""

    name: str
    """`%tid.x`"""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Immediate:
    text: str
    """As written: `-1`, `0x1F`, `0f3F800000`."""
    value: int | float = field(compare=False)

    @property
    def bits(self) -> int:
        """A float's bit pattern, 32 bits for `0f…` and 64 for all others; an integer's low 64 bits."""
        if isinstance(self.value, int):
            return self.value % 2**64
        if self.text[1] in "dDfF":
            return int(self.text[2:], 16)
        return int.from_bytes(struct.pack(">d", self.value))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, a parameter or a function by its name: its address, where it is not in brackets."""

    name: str
    block: int = MODULE
    """The block that declares it."""
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.offset else self.name


@dataclass(frozen=True, slots=True)
class Label:
    """A place in a function, or a table of places that stands there."""

    name: str
    block: int = 0
    """The block it stands in: the same label in another block is another one."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a result nobody wants."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class Vector:
    """`{%f1, _, %f3, %f4}`"""

    items: tuple[Operand, ...]

    def __str__(self) -> str:
        return "{" + _listed(self.items) + "}"


@dataclass(frozen=True, slots=True)
class Address:
    """`[%rd1+16]`; with coordinates, as tensors and textures have them: `[%rd1, {%r1, %r2}]`."""

    base: Register | Symbol | None
    """None where the address is a number."""
    offset: int = 0
    more: tuple[Operand, ...] = ()

    def __str__(self) -> str:
        if self.base is None:
            shown = str(self.offset)
        else:
            shown = f"{self.base}+{self.offset}" if self.offset else str(self.base)
        return f"[{_listed((shown, *self.more))}]"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two results: `%p1|%p2`."""

    first: Register | Sink
    second: Register | Sink

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call hands over or gets back: `(param0, param1)`."""

    items: tuple[Operand, ...]

    def __str__(self) -> str:
        return f"({_listed(self.items)})"


Operand = Register | Special | Immediate | Symbol | Label | Sink | Vector | Address | Pair | Arguments


@dataclass(frozen=True, slots=True)
class Predicate:
    register: Register
    negated: bool = False

    def __str__(self) -> str:
        return f"@!{self.register}" if self.negated else f"@{self.register}"


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the source, by .loc."""

    file: int
    """Index into Module.files."""
    line: int
    column: int
    function: str = ""
    """Where it was inlined: the label of the inlined function's name, a key of Module.strings."""
    inlined: tuple[Location, ...] = ()
    """Where it was inlined, innermost caller first."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """Equal to another that does the same to the same operands, wherever the two stand."""

    opcode: str
    """`ld`"""
    modifiers: tuple[str, ...]
    """`("global", "nc", "L1::no_allocate", "v4", "u32")`"""
    operands: tuple[Operand, ...] = ()
    predicate: Predicate | None = None
    line: int = field(default=1, compare=False)
    """In the text, from 1: where it begins."""
    location: Location | None = field(default=None, compare=False)
    block: int = field(default=0, compare=False)
    """The innermost { } it stands in, an index into Function.blocks; 0 is the function's own."""

    @property
    def name(self) -> str:
        """`ld.global.nc.v4.u32`"""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def types(self) -> tuple[str, ...]:
        """Data types among the modifiers, in order: `("f32", "bf16", "bf16", "f32")`."""
        return _types(self.modifiers)

    @property
    def spaces(self) -> tuple[str, ...]:
        """Memories it names, in order; a copy names two, its destination first."""
        return _spaces(self.modifiers)

    @property
    def space(self) -> str:
        """The first of them, `shared::cta`; empty where it names none."""
        return next(iter(self.spaces), "")

    @property
    def vector(self) -> int:
        """Elements it moves at once: 4 for `.v4`."""
        return _vector(self.modifiers)

    @property
    def names(self) -> tuple[Register | Symbol | Label, ...]:
        """Every register, symbol and label in it: predicate first, then operands as they stand."""
        predicate = (self.predicate.register,) if self.predicate else ()
        return (*predicate, *_names(self.operands))

    @property
    def text(self) -> str:
        """`@!%p1 ld.global.u32 %r1, [%rd1+16]`: one spelling for each instruction."""
        words = (str(self.predicate or ""), self.name, _listed(self.operands))
        return " ".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class Pointer:
    """What a parameter's .ptr promises."""

    space: str
    align: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, or a parameter of a function."""

    space: str
    type: str
    name: str
    align: int = 0
    """In bytes; 0 where the type's own is meant."""
    vector: int = 1
    shape: tuple[int, ...] = ()
    """Of an array; 0 stands for an open length, `[]`."""
    initialiser: str = ""
    linkage: str = ""
    pointer: Pointer | None = None
    attributes: tuple[str, ...] = ()
    block: int = MODULE
    line: int = field(default=1, compare=False)

    @property
    def size(self) -> int:
        """Bytes; 0 where the length is open, and for types that have none."""
        return _bits(self.type) // 8 * self.vector * prod(self.shape)


@dataclass(frozen=True, slots=True)
class Registers:
    """A .reg: `%r<20>` is `%r0` to `%r19`; a single register has no count."""

    type: str
    name: str
    count: int | None = None
    vector: int = 1
    block: int = 0
    line: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Prototype:
    """What a call through a pointer takes and gives."""

    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]


@dataclass(frozen=True)
class Function:
    name: str
    kind: str
    """`entry` or `func`"""
    linkage: str
    """`visible`, `extern`, `weak` or empty."""
    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]
    directives: dict[str, tuple[int, ...]]
    """`{"maxntid": (256, 1, 1), "minnctapersm": (2,)}`"""
    pragmas: tuple[str, ...]
    line: int
    defined: bool
    """False where it is only declared."""
    registers: tuple[Registers, ...] = ()
    variables: tuple[Variable, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    labels: dict[Label, int] = field(default_factory=dict)
    """Label → index of the instruction after it; at the very end, their number."""
    targets: dict[Label, tuple[Label | Symbol, ...]] = field(default_factory=dict)
    """.branchtargets and .calltargets."""
    prototypes: dict[Label, Prototype] = field(default_factory=dict)
    blocks: tuple[int, ...] = ()
    """Each block's parent; -1 for the first, the function's own."""

    def declaration(self, register: Register) -> Registers | None:
        """The .reg that declares it."""
        for key in (register.name, _prefix(register.name)):
            if found := self._declarations.get((register.block, key)):
                return found
        return None

    @cached_property
    def _declarations(self) -> dict[tuple[int, str], Registers]:
        return {(r.block, r.name): r for r in self.registers}


@dataclass(frozen=True)
class Module:
    version: tuple[int, int]
    target: str
    """`sm_90a`"""
    options: tuple[str, ...]
    """What else .target names: `debug`."""
    address_size: int
    files: dict[int, str]
    globals: tuple[Variable, ...]
    functions: tuple[Function, ...]
    """In order; one that is declared first and defined later is there twice."""
    strings: dict[str, str]
    """Label → text, from .debug_str: names of inlined functions."""
    aliases: dict[str, str]
    pragmas: tuple[str, ...]

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels."""
        return tuple(f for f in self.functions if f.kind == "entry" and f.defined)

    def function(self, name: str) -> Function:
        """By name; the definition, where there is one."""
        found = [f for f in self.functions if f.name == name]
        if not found:
            raise SourceError(
                f"the PTX holds no function called {name}", fix=f"it has {_listed(f.name for f in self.functions)}"
            )
        return next((f for f in found if f.defined), found[0])


def read(text: str) -> Module:
    """The whole of a PTX text."""
    if not text.strip():
        raise SourceError("the PTX is empty", fix="it begins with .version, .target and .address_size")
    return _Reader(_Stream(text)).module()


def read_instruction(text: str, names: Iterable[Register | Symbol | Label] = ()) -> Instruction:
    """One instruction by itself. `names` says what its names are where the text cannot: without them, what begins with
    % is a register of block 0 and the rest are symbols, so `read_instruction(i.text, i.names) == i`."""
    names = tuple(names)
    stream = _Stream(text.strip().removesuffix(";") + ";")
    scope = _Scope(lenient=True)
    scope.open(0)
    for name in names:
        if not isinstance(name, Label):
            scope.declare(
                Register(name.name, name.block) if isinstance(name, Register) else Symbol(name.name, name.block)
            )
    body = _Body(stream, scope)
    body.instruction(stream.peek())
    if stream.peek() or not body.instructions:
        raise stream.fail("one instruction and no more")
    labels = {n.name: n for n in names if isinstance(n, Label)}
    return _with_labels(body.instructions[0], lambda label, _: labels.get(label.name, label))


class _Cursor:
    """Tokens one by one; an empty one when there are no more."""

    end = ";"
    """What stands behind the last token."""

    def __init__(self, tokens: list[str], line: int) -> None:
        self.tokens, self.line, self.at = tokens, line, 0

    def peek(self) -> str:
        try:
            return self.tokens[self.at]
        except IndexError:
            return self._beyond()

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str, after: str = "") -> None:
        if not self.accept(token):
            raise self.fail(f"'{token}'{after}")

    def name(self, what: str) -> str:
        token = self.peek()
        if not _NAME.fullmatch(token):
            raise self.fail(what)
        self.at += 1
        return token

    def number(self, what: str) -> int:
        token = self.peek()
        value = _literal(token)
        if not isinstance(value, int):
            raise self.fail(what)
        self.at += 1
        return value

    def fail(self, expected: str) -> SourceError:
        """What to raise when the next token is not what was expected."""
        token = self.peek()
        return _unexpected(self.line, expected, token or self.end)

    def _beyond(self) -> str:
        return ""


class _Stream(_Cursor):
    """The tokens of a whole text, made a line at a time."""

    end = ""

    def __init__(self, text: str) -> None:
        super().__init__([], 0)
        self._lines = iter(_without_comments(text).split("\n"))

    def statement(self, last: str = ";") -> _Cursor:
        """What is left up to the next `;`, which is taken too."""
        line, start = self.line, self.at
        found = list[str]()
        while True:
            try:
                end = self.tokens.index(last, start)
            except ValueError:
                found += self.tokens[start:]
                self.at = len(self.tokens)
                if not self._beyond():
                    raise _unexpected(line, f"a '{last}'", "") from None
                start = 0
                continue
            found = found + self.tokens[start:end] if found else self.tokens[start:end]
            self.at = end + 1
            return _Cursor(found, line)

    def _beyond(self) -> str:
        for text in self._lines:
            self.line += 1
            tokens = _TOKEN.findall(text)
            if tokens and tokens[-1].startswith("//"):
                tokens.pop()
            if tokens and tokens[0] != "#":
                self.tokens, self.at = tokens, 0
                return str(tokens[0])
        return ""


class _Scope(dict[str, Operand]):
    """What a single token means as an operand here. Names belong to the innermost open block that declares them."""

    def __init__(self, lenient: bool = False) -> None:
        super().__init__()
        self._lenient = lenient
        self._names: dict[str, list[Register | Symbol]] = {}
        self._counted: dict[str, list[tuple[int, int]]] = {}
        self._open: list[tuple[int, list[str], list[str]]] = []
        self.block = MODULE

    def open(self, block: int) -> None:
        self._open.append((block, [], []))
        self.block = block

    def close(self) -> None:
        _, names, prefixes = self._open.pop()
        self.block = self._open[-1][0]
        for name in names:
            self._names[name].pop()
            self.pop(name, None)
        for prefix in prefixes:
            self._counted[prefix].pop()
        if prefixes:
            self.clear()

    def declare(self, name: Register | Symbol) -> None:
        self._names.setdefault(name.name, []).append(name)
        self._open[-1][1].append(name.name)
        self.pop(name.name, None)

    def declare_counted(self, prefix: str, count: int) -> None:
        self._counted.setdefault(prefix, []).append((self.block, count))
        self._open[-1][2].append(prefix)
        self.clear()

    def __missing__(self, token: str) -> Operand:
        found = self._read(token)
        if "." not in token:  # `v.x` would have to be forgotten together with `v`
            self[token] = found
        return found

    def _read(self, token: str) -> Operand:
        if token == "_":
            return Sink()
        if token == "WARP_SZ":
            return Immediate(token, 32)
        value = _literal(token)
        if value is not None:
            return Immediate(_tidy(token), value)
        if found := self._declared(token):
            return found
        name, _, part = token.partition(".")
        if part and isinstance(found := self._declared(name), Register) and "." not in part:
            return replace(found, part=part)
        if token.startswith("%") and token[1:] in _SPECIALS:
            return Special(token)
        if token.startswith("%") and self._lenient:
            return Register(name, 0, part)
        if _NAME.fullmatch(token) and not token.startswith("%"):
            return Symbol(token)
        raise LookupError(token)

    def _declared(self, name: str) -> Register | Symbol | None:
        single = self._names.get(name)
        found = single[-1] if single else None
        prefix = _prefix(name)
        digits = name[len(prefix) :]
        if prefix in self._counted and 0 < len(digits) < 10 and (digits == "0" or digits[0] != "0"):
            for block, count in reversed(self._counted[prefix]):
                if int(digits) < count:
                    return found if found and found.block > block else Register(name, block)
        return found


class _Body:
    """A function's body: its instructions, and what they stand among."""

    def __init__(self, stream: _Stream, scope: _Scope) -> None:
        self.stream, self.scope = stream, scope
        self.registers: list[Registers] = []
        self.variables: list[Variable] = []
        self.instructions: list[Instruction] = []
        self.labels: dict[Label, int] = {}
        self.targets: dict[Label, tuple[Label | Symbol, ...]] = {}
        self.prototypes: dict[Label, Prototype] = {}
        self.blocks: list[int] = []
        self.pragmas: list[str] = []
        self._branches: list[int] = []
        self._tables: dict[Label, tuple[int, tuple[Label | Symbol, ...]]] = {}
        self._location: Location | None = None
        self._places: dict[tuple[int, int, int], Location] = {}

    def read(self) -> None:
        """From behind its `{` to its `}`."""
        stream, scope = self.stream, self.scope
        begun = stream.line
        self.blocks.append(-1)
        depth = 1
        while depth:
            token = stream.peek()
            if token == "":
                raise _unexpected(stream.line, f"the '}}' of the function whose body begins on line {begun}", "")
            first = token[0]
            if first == ".":
                self._directive(token)
            elif first == "{":
                stream.take()
                depth += 1
                if depth > _DEEPEST:
                    raise _error(stream.line, f"more than {_DEEPEST} blocks within blocks")
                self.blocks.append(scope.block)
                scope.open(len(self.blocks) - 1)
            elif first == "}":
                stream.take()
                depth -= 1
                if depth:
                    scope.close()
            else:
                self.instruction(token)
        self._resolve()

    def instruction(self, token: str) -> None:
        """An instruction, or a label."""
        stream, scope = self.stream, self.scope
        line, block = stream.line, scope.block
        stream.at += 1
        predicate = None
        if token == "@":
            negated, token = stream.accept("!"), stream.peek()
            register = self._operand(stream)
            if not isinstance(register, Register):
                raise _unexpected(line, "a predicate register after '@'", token)
            predicate, token = Predicate(register, negated), stream.take()
        elif stream.peek() == ":":
            stream.at += 1
            self._label(token, line)
            return
        opcode, modifiers = _opcode(token)
        if not opcode:
            raise _unexpected(line, "an instruction, a label, a directive or '}'", token)
        statement = stream.statement()
        if statement.tokens and statement.tokens[0][0] == ".":
            modifiers += self._modifiers(statement)
        operands = self._operands(statement, opcode == "call")
        if opcode in ("bra", "brx", "call"):
            operands = _placed(opcode, operands, block, line)
            self._branches.append(len(self.instructions))
        self.instructions.append(Instruction(opcode, modifiers, operands, predicate, line, self._location, block))

    def _modifiers(self, statement: _Cursor) -> tuple[str, ...]:
        """Those apart from their opcode: `mov .u32`."""
        found = list[str]()
        while statement.peek().startswith(".") and not _IS_NUMBER.match(statement.peek()):
            found.append(statement.take()[1:])
        return tuple(found)

    def _operands(self, statement: _Cursor, call: bool) -> tuple[Operand, ...]:
        tokens = statement.tokens[statement.at :] if statement.at else statement.tokens
        if not tokens:
            return ()
        if len(tokens) & 1 and tokens[1::2].count(",") == len(tokens) >> 1:
            try:
                return tuple([self.scope[token] for token in tokens[::2]])
            except LookupError:
                pass
        found = [self._whole_operand(statement, call)]
        while statement.peek():
            if not statement.accept(","):
                raise statement.fail("',' or ';'")
            found.append(self._whole_operand(statement, call))
        return tuple(found)

    def _whole_operand(self, c: _Cursor, call: bool) -> Operand:
        token = c.peek()
        if token == "[":
            return self._address(c)
        if token == "{":
            return Vector(self._items(c, "}"))
        if token == "(" and call:
            return Arguments(self._items(c, ")"))
        found = self._operand(c)
        if c.peek() == "|":
            c.take()
            second = self._operand(c)
            if isinstance(found, Register | Sink) and isinstance(second, Register | Sink):
                return Pair(found, second)
            raise _unexpected(c.line, "a register on either side of '|'", f"{found}|{second}")
        return found

    def _items(self, c: _Cursor, end: str) -> tuple[Operand, ...]:
        c.take()
        if c.accept(end):
            return ()
        found = [self._operand(c)]
        while c.accept(","):
            found.append(self._operand(c))
        c.expect(end, " or ','")
        return tuple(found)

    def _address(self, c: _Cursor) -> Address:
        c.take()
        first = self._operand(c)
        offset = 0
        base: Register | Symbol | None = None
        if isinstance(first, Symbol):
            base, offset = replace(first, offset=0) if first.offset else first, first.offset
        elif isinstance(first, Register):
            base = first
            if c.peek() in ("+", "-"):
                offset = _expression(c)
        elif isinstance(first, Immediate) and isinstance(first.value, int):
            offset = first.value
        else:
            raise _unexpected(c.line, "a register, a name or a number as address", first)
        more = list[Operand]()
        while c.accept(","):
            more.append(Vector(self._items(c, "}")) if c.peek() == "{" else self._operand(c))
        c.expect("]", " or ','")
        return Address(base, offset, tuple(more))

    def _operand(self, c: _Cursor) -> Operand:
        """One without brackets."""
        token = c.peek()
        sign = ""
        if token in ("!", "-") and c.at + 1 < len(c.tokens) and _NAME.match(c.tokens[c.at + 1]):
            sign = c.take()
            token = c.peek()
        try:
            found = self.scope[token]
        except LookupError:
            if token.startswith("%") and len(token) > 1:
                raise _error(c.line, f"{token[:40]} is neither declared nor a special register") from None
            if token in _SIGNS or token == "(":
                return self._computed(c)
            raise c.fail("an operand") from None
        if sign and not isinstance(found, Register):
            raise c.fail(f"a register after '{sign}'")
        if isinstance(_literal(token), int):
            return self._computed(c)
        c.at += 1
        if isinstance(found, Register) and sign:
            return replace(found, sign=sign)
        if isinstance(found, Symbol) and c.peek() in ("+", "-"):
            return replace(found, offset=_expression(c))
        return found

    def _computed(self, c: _Cursor) -> Immediate:
        """A number, signed or worked out of several."""
        start = c.at
        if c.peek() == "-":
            c.take()
            value = _literal(c.peek())
            if isinstance(value, float) and c.peek()[1:2] not in ("f", "F", "d", "D"):
                return Immediate("-" + c.take(), -value)
            c.at = start
        value = _expression(c)
        written = c.tokens[start : c.at]
        if len(written) == 1 or (len(written) == 2 and written[0] == "-"):
            return Immediate("".join(written), value)
        return Immediate(str(value), value)

    def _label(self, name: str, line: int) -> None:
        label = Label(name, self.scope.block)
        if not _NAME.fullmatch(name) or name.startswith("%"):
            raise _unexpected(line, "a label before ':'", name)
        if self._stands(label):
            raise _error(line, f"the label {name} stands in this block a second time")
        following = self.stream.peek()
        if following in (".branchtargets", ".calltargets"):
            self.stream.take()
            statement = self.stream.statement()
            listed = [statement.name("a name")]
            while statement.accept(","):
                listed.append(statement.name("a name"))
            if statement.peek():
                raise statement.fail("',' or ';'")
            branches = following == ".branchtargets"
            self._tables[label] = line, tuple(Label(n, label.block) if branches else Symbol(n) for n in listed)
        elif following == ".callprototype":
            self.stream.take()
            returns = _parameters(self.stream) if self.stream.peek() == "(" else ()
            self.stream.name("'_' in a prototype")
            params = _parameters(self.stream) if self.stream.peek() == "(" else ()
            self.stream.statement()
            self.prototypes[label] = Prototype(returns, params)
        else:
            self.labels[label] = len(self.instructions)

    def _directive(self, token: str) -> None:
        stream, block = self.stream, self.scope.block
        if token == ".loc":
            stream.take()
            self._loc()
        elif token == ".reg":
            line = stream.line
            for r in _registers(stream.statement(), block, line):
                self.registers.append(r)
                if r.count is None:
                    self.scope.declare(Register(r.name, block))
                else:
                    self.scope.declare_counted(r.name, r.count)
        elif token == ".pragma":
            self.pragmas += _pragmas(stream)
        elif token in _LINKAGE or token[1:].partition("::")[0] in _SPACES:
            linkage = stream.take()[1:] if token in _LINKAGE else ""
            for variable in _variables(stream.statement(), linkage, block):
                self.variables.append(variable)
                self.scope.declare(Symbol(variable.name, block))
        else:
            raise stream.fail("an instruction or a directive of a function's body")

    def _loc(self) -> None:
        c = self.stream
        place = self._place()
        function, inlined = "", tuple[Location, ...]()
        while c.accept(","):
            if c.accept("function_name"):
                function = c.take()
                if c.accept("+"):
                    function += f"+{c.number('an offset')}"
            elif c.accept("inlined_at"):
                at = self._place()
                known = self._places.get(at)
                caller = Location(*at, known.function if known else "")
                inlined = (caller, *(known.inlined if known else ()))[:_DEEPEST]
            else:
                raise c.fail("function_name or inlined_at")
        self._places[place] = self._location = Location(*place, function, inlined)

    def _place(self) -> tuple[int, int, int]:
        c = self.stream
        return c.number("a file's number"), c.number("a line of the source"), c.number("a column of the source")

    def _resolve(self) -> None:
        """Gives every branch the label it means: the innermost around it."""
        for i in self._branches:
            self.instructions[i] = _with_labels(self.instructions[i], self._found)
        for label, (line, listed) in self._tables.items():
            self.targets[label] = tuple(self._found(x, line) if isinstance(x, Label) else x for x in listed)

    def _stands(self, label: Label) -> bool:
        return label in self.labels or label in self._tables or label in self.prototypes

    def _found(self, label: Label, line: int) -> Label:
        block = label.block
        while block >= 0:
            here = Label(label.name, block)
            if self._stands(here):
                return here
            block = self.blocks[block]
        raise _error(line, f"expected a label {label.name[:40]} in or around this block, found none")


class _Reader:
    """A module, statement by statement."""

    def __init__(self, stream: _Stream) -> None:
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
        target, *options = self._target()
        size = 32
        if stream.accept(".address_size"):
            size = stream.number("32 or 64")
        while token := stream.peek():
            self._directive(token)
        return Module(
            (int(version[1]), int(version[2])), target, tuple(options), size, self.files, tuple(self.globals),
            tuple(self.functions), self.strings, self.aliases, tuple(self.pragmas),
        )  # fmt: skip

    def _target(self) -> list[str]:
        found = [self.stream.name("a target such as sm_90")]
        while self.stream.accept(","):
            found.append(self.stream.name("an option of .target"))
        return found

    def _directive(self, token: str) -> None:
        stream = self.stream
        linkage = ""
        if token in _LINKAGE:
            linkage = stream.take()[1:]
            token = stream.peek()
        if token in (".entry", ".func"):
            self.functions.append(self._function(linkage))
        elif token[:1] == "." and token[1:].partition("::")[0] in _SPACES:
            self.globals += _variables(stream.statement(), linkage, MODULE)
        elif linkage:
            raise stream.fail(f"a function or a variable after .{linkage}")
        elif token == ".file":
            self._file()
        elif token == ".section":
            self._section()
        elif token == ".pragma":
            self.pragmas += _pragmas(stream)
        elif token == ".alias":
            stream.take()
            name = stream.name("a function")
            stream.expect(",")
            self.aliases[name] = stream.name("a function")
            stream.expect(";")
        elif token == ".target":
            stream.take()
            self._target()
        else:
            raise stream.fail("a function, a variable or another directive of a module")

    def _file(self) -> None:
        stream = self.stream
        stream.take()
        index = stream.number("a file's number")
        path = stream.peek()
        if len(path) < 2 or path[0] != '"':
            raise stream.fail("a file's name in quotes")
        stream.take()
        self.files[index] = path[1:-1]
        while stream.accept(","):
            stream.number("the file's time or size")

    def _section(self) -> None:
        """Only .debug_str is kept: .loc names its strings."""
        stream = self.stream
        stream.take()
        name = stream.take()
        stream.expect("{", " after .section's name")
        data, labels, before, bytes_ = bytearray(), list[tuple[str, int]](), "", False
        for token in stream.statement("}").tokens:
            if token == ":":
                labels.append((before, len(data)))
            elif token[0] == ".":
                bytes_ = token == ".b8"
            elif bytes_ and len(token) < 4 and isinstance(value := _literal(token), int):
                data.append(value & 255)
            before = token
        if name == ".debug_str":
            ends = [at for _, at in labels[1:]] + [len(data)]
            for (label, start), end in zip(labels, ends, strict=False):
                self.strings[label] = data[start:end].split(b"\0", 1)[0].decode(errors="replace")

    def _function(self, linkage: str) -> Function:
        stream = self.stream
        kind, line = stream.take()[1:], stream.line
        if stream.accept(".attribute"):
            _group(stream)
        returns = _parameters(stream) if kind == "func" and stream.peek() == "(" else ()
        name = stream.name("a function's name")
        params = _parameters(stream) if stream.peek() == "(" else ()
        directives, pragmas = dict[str, tuple[int, ...]](), list[str]()
        while (token := stream.peek()) not in ("{", ";"):
            if token == ".pragma":
                pragmas += _pragmas(stream)
            elif token == ".attribute":
                stream.take()
                _group(stream)
            elif token.startswith("."):
                stream.take()
                directives[token[1:]] = tuple(_numbers(stream))
            else:
                raise stream.fail("'{', ';' or a directive after a function's parameters")
        stream.take()
        head = (name, kind, linkage, returns, params, directives)
        if token == ";":
            return Function(*head, tuple(pragmas), line, False)
        scope = _Scope()
        scope.open(0)
        for param in (*returns, *params):
            scope.declare(Register(param.name, 0) if param.space == "reg" else Symbol(param.name, 0))
        body = _Body(stream, scope)
        body.registers += [
            Registers(p.type, p.name, None, p.vector, 0, p.line) for p in (*returns, *params) if p.space == "reg"
        ]
        body.read()
        return Function(
            *head, (*pragmas, *body.pragmas), line, True, tuple(body.registers), tuple(body.variables),
            tuple(body.instructions), body.labels, body.targets, body.prototypes, tuple(body.blocks),
        )  # fmt: skip


def _error(line: int, what: str, fix: str = "") -> SourceError:
    return SourceError(what, where=f"PTX line {line}", fix=fix)


def _unexpected(line: int, expected: str, token: object) -> SourceError:
    shown = str(token)
    found = f"'{shown[:40]}'" if shown else "the end of the text"
    return _error(line, f"expected {expected}, found {found}")


def _registers(c: _Cursor, block: int, line: int) -> Iterator[Registers]:
    c.take()
    vector, type_ = 1, ""
    while (token := c.peek()).startswith("."):
        if _TYPE.fullmatch(token[1:]):
            type_ = token[1:]
        elif token in (".v2", ".v4"):
            vector = int(token[2:])
        else:
            raise c.fail("a register's type")
        c.take()
    if not type_:
        raise c.fail("a register's type")
    while True:
        name, count = c.name("a register's name"), None
        if c.accept("<"):
            count = c.number("how many registers")
            c.expect(">")
        yield Registers(type_, name, count, vector, block, line)
        if not c.accept(","):
            break
    if c.peek():
        raise c.fail("',' or ';'")


def _variables(c: _Cursor, linkage: str, block: int) -> Iterator[Variable]:
    """`.global .align 4 .u32 a = 5, b[4] = {1, 2, 3, 4}`"""
    first = _variable(c, linkage, block)
    yield _initialised(c, first)
    while c.accept(","):
        name = c.name("a variable's name")
        yield _initialised(c, replace(first, name=name, shape=_shape(c)))
    if c.peek():
        raise c.fail("',' or ';'")


def _variable(c: _Cursor, linkage: str, block: int) -> Variable:
    """Up to its name and shape."""
    line = c.line
    space, type_, align, vector = "", "", 0, 1
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
            attributes.append(_group(c))
        elif word in ("v2", "v4", "v8"):
            vector = int(word[1:])
        elif word.partition("::")[0] in _SPACES:
            if pointer:
                pointer = Pointer(word, pointer.align)
            else:
                space = word
        elif _TYPE.fullmatch(word):
            type_ = word
        else:
            c.at -= 1
            raise c.fail("a type, a space or an alignment")
    if not type_ or not space:
        raise c.fail("a type" if space else "a space such as .param")
    name = c.name("a variable's name")
    return Variable(
        space, type_, name, align, vector, _shape(c), "", linkage, pointer, tuple(attributes), block, line
    )  # fmt: skip


def _shape(c: _Cursor) -> tuple[int, ...]:
    found = list[int]()
    while c.accept("["):
        found.append(0 if c.peek() == "]" else c.number("an array's length"))
        c.expect("]")
    return tuple(found)


def _initialised(c: _Cursor, variable: Variable) -> Variable:
    if not c.accept("="):
        return variable
    start, depth = c.at, 0
    while (token := c.peek()) and (depth or token != ","):
        depth += (token in "{(") - (token in "})")
        c.take()
    if start == c.at or depth:
        raise c.fail("an initialiser")
    return replace(variable, initialiser="".join(c.tokens[start : c.at]).replace(",", ", "))


def _parameters(c: _Cursor) -> tuple[Variable, ...]:
    """`(.param .u64 .ptr .global .align 16 a, .param .b8 b[24])`"""
    c.take()
    found = list[Variable]()
    if c.accept(")"):
        return ()
    while True:
        found.append(_variable(c, "", 0))
        if not c.accept(","):
            break
    c.expect(")", " or ','")
    return tuple(found)


def _pragmas(stream: _Stream) -> list[str]:
    stream.take()
    statement = stream.statement()
    found = list[str]()
    while token := statement.peek():
        if token[0] != '"' or len(token) < 2:
            raise statement.fail("a pragma in quotes")
        found.append(statement.take()[1:-1])
        statement.accept(",")
    return found


def _group(c: _Cursor) -> str:
    """What stands in parentheses."""
    c.expect("(")
    depth, found = 1, list[str]()
    while depth:
        token = c.take()
        if token in ("", ";"):
            raise c.fail("')'")
        depth += (token == "(") - (token == ")")
        found.append(token)
    return "".join(found[:-1]).removeprefix(".")


def _numbers(c: _Cursor) -> Iterator[int]:
    if isinstance(_literal(c.peek()), int):
        yield c.number("a number")
        while c.accept(","):
            yield c.number("a number")


def _placed(opcode: str, operands: tuple[Operand, ...], block: int, line: int) -> tuple[Operand, ...]:
    """A branch's operands with labels as labels: where it goes to, or the table or prototype it names."""
    if opcode == "bra":
        first = 0
    elif opcode == "brx":
        first = 1
    else:
        first = 2 if operands and isinstance(operands[0], Arguments) else 1
    if len(operands) < (first if opcode == "call" else first + 1):
        raise _unexpected(line, f"where to go after {opcode}", ";")
    found = list(operands)
    for i, operand in enumerate(operands[first:], first):
        if isinstance(operand, Symbol):
            found[i] = Label(operand.name, block)
        elif opcode != "call":
            raise _unexpected(line, f"a label after {opcode}", operand)
    return tuple(found)


def _with_labels(instruction: Instruction, meant: Callable[[Label, int], Label]) -> Instruction:
    operands = (meant(o, instruction.line) if isinstance(o, Label) else o for o in instruction.operands)
    return replace(instruction, operands=tuple(operands))


def _without_comments(text: str) -> str:
    """Without /* */, every line in its place."""
    if "/*" not in text:
        return text

    def blank(found: re.Match[str]) -> str:
        if found["open"] is not None:
            line = text.count("\n", 0, found.start()) + 1
            raise _unexpected(line, "the '*/' of this comment", "")
        whole = found[0]
        return " " + "\n" * whole.count("\n") if whole.startswith("/*") else whole

    return _OUTSIDE_CODE.sub(blank, text)


def _expression(c: _Cursor) -> int:
    """A constant expression in 64 bits: C's arithmetic, without comparisons, `?:` and casts."""
    values, waiting, depth = list[int](), list[tuple[int, str]](), 0

    def settle(least: int) -> None:
        while waiting and waiting[-1][0] >= least:
            rank, sign = waiting.pop()
            right = values.pop()
            if rank == _UNARY:
                values.append(_SIGNS[sign](right))
            elif sign in "/%" and right == 0:
                raise _error(c.line, "a constant is divided by zero")
            else:
                values.append(_wrapped(_OPERATORS[sign][1](values.pop(), right)))

    c.accept("+")
    while True:
        while (token := c.peek()) in _SIGNS or token == "(":
            depth += token == "("
            waiting.append((-1 if token == "(" else _UNARY, c.take()))
        values.append(c.number("a number"))
        while depth and c.accept(")"):
            settle(0)
            waiting.pop()
            depth -= 1
        if c.peek() not in _OPERATORS:
            break
        rank = _OPERATORS[c.peek()][0]
        settle(rank)
        waiting.append((rank, c.take()))
    settle(0)
    if depth:
        raise c.fail("')'")
    return values[0]


def _wrapped(value: int) -> int:
    return value if -(2**63) <= value < 2**64 else (value + 2**63) % 2**64 - 2**63


def _quotient(left: int, right: int) -> int:
    """Towards zero, as in C."""
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


_SIGNS: dict[str, Callable[[int], int]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert, "!": lambda value: int(not value)
}  # fmt: skip
_OPERATORS: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "|": (1, operator.or_), "^": (2, operator.xor), "&": (3, operator.and_),
    "<<": (4, lambda a, b: a << b % 64), ">>": (4, lambda a, b: a >> b % 64),
    "+": (5, operator.add), "-": (5, operator.sub),
    "*": (6, operator.mul), "/": (6, _quotient), "%": (6, lambda a, b: a - b * _quotient(a, b)),
}  # fmt: skip
"""How tightly each binds, and what it does."""
_UNARY = 7


@lru_cache(maxsize=8192)
def _literal(token: str) -> int | float | None:
    """The value of a number; None for any other token, and for a number of more than 64 bits."""
    if not token or not (token[0].isdecimal() or token[0] == ".") or not _IS_NUMBER.fullmatch(token):
        return None
    kind = token[1:2]
    if kind in ("f", "F"):
        return float(struct.unpack(">f", bytes.fromhex(token[2:]))[0])
    if kind in ("d", "D"):
        return float(struct.unpack(">d", bytes.fromhex(token[2:]))[0])
    digits = token.removesuffix("U")
    if len(digits) > 400:
        return None
    if kind in ("x", "X"):
        value = int(digits, 16)
    elif kind in ("b", "B"):
        value = int(digits, 2)
    elif not digits.isdecimal():
        return float(digits)
    elif digits[0] != "0":
        value = int(digits)
    elif set(digits) & {"8", "9"}:
        return None
    else:
        value = int(digits, 8)
    return value if value < 2**64 else None


def _tidy(token: str) -> str:
    """One spelling for floats in hexadecimal: `0f3F800000`."""
    return "0" + token[1].lower() + token[2:].upper() if token[1:2] in ("f", "F", "d", "D") else token


def _prefix(name: str) -> str:
    """`%r12` → `%r`"""
    return name.rstrip("0123456789")


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def _names(operands: Iterable[Operand | None]) -> Iterator[Register | Symbol | Label]:
    for o in operands:
        if isinstance(o, Register | Symbol | Label):
            yield o
        elif isinstance(o, Vector | Arguments):
            yield from _names(o.items)
        elif isinstance(o, Address):
            yield from _names((o.base, *o.more))
        elif isinstance(o, Pair):
            yield from _names((o.first, o.second))


@lru_cache(maxsize=8192)
def _opcode(token: str) -> tuple[str, tuple[str, ...]]:
    """`ld.global.u32` → `ld` and its modifiers; an empty opcode where it is none."""
    opcode, *modifiers = token.split(".")
    return (opcode, tuple(modifiers)) if _OPCODE.fullmatch(opcode) else ("", ())


@lru_cache(maxsize=8192)
def _types(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(m for m in modifiers if _TYPE.fullmatch(m))


@lru_cache(maxsize=8192)
def _spaces(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(m for m in modifiers if m.partition("::")[0] in _SPACES)


@lru_cache(maxsize=8192)
def _vector(modifiers: tuple[str, ...]) -> int:
    return next((int(m[1:]) for m in modifiers if m in ("v2", "v4", "v8")), 1)


@lru_cache(maxsize=8192)
def _bits(type_: str) -> int:
    found = _BITS.fullmatch(type_)
    return int(found[1]) * int(found[2] or 1) if found else 0
