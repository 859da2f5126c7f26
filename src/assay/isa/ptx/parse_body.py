"""Parses the body of a function: its instructions, labels and declarations."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from assay.isa.ptx import parse_declarations as declarations
from assay.isa.ptx.cursor import Cursor, Stream, error, unexpected
from assay.isa.ptx.declarations import Prototype, Registers, Variable
from assay.isa.ptx.instruction import Instruction
from assay.isa.ptx.numbers import literal
from assay.isa.ptx.operands import Arguments, Label, Operand, Predicate, Register, Symbol
from assay.isa.ptx.parse_locations import Locations
from assay.isa.ptx.parse_operands import operands, single
from assay.isa.ptx.scope import Scope
from assay.isa.ptx.tokens import NAME
from assay.isa.ptx.types import LINKAGE, is_space

_DEEPEST = 256
"""The most nested blocks accepted; compilers stay far below."""
_OPCODE = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


class Body:
    def __init__(self, stream: Stream, scope: Scope) -> None:
        self.stream, self.scope = stream, scope
        self.registers: list[Registers] = []
        self.variables: list[Variable] = []
        self.instructions: list[Instruction] = []
        self.labels: dict[Label, int] = {}
        self.targets: dict[Label, tuple[Label | Symbol, ...]] = {}
        self.prototypes: dict[Label, Prototype] = {}
        self.blocks: list[int] = [-1]
        self.pragmas: list[str] = []
        self._locations = Locations()
        self._branches: list[int] = []
        self._tables: dict[Label, int] = {}

    def read(self) -> None:
        """Parse from the token after the opening `{` to the closing `}`."""
        stream, scope = self.stream, self.scope
        begun, depth = stream.line, 1
        while depth:
            token = stream.peek()
            if token == "":
                raise unexpected(stream.line, f"the '}}' of the function whose body begins on line {begun}", "")
            first = token[0]
            if first == ".":
                self._directive(token)
            elif first == "{":
                stream.take()
                depth += 1
                if depth > _DEEPEST:
                    raise error(stream.line, f"more than {_DEEPEST} blocks within blocks")
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
        """Parse an instruction or a label that begins with `token`, the next one."""
        stream, scope = self.stream, self.scope
        line, block = stream.line, scope.block
        stream.at += 1
        predicate = None
        if token == "@":
            negated, token = stream.accept("!"), stream.peek()
            register = single(stream, scope)
            if not isinstance(register, Register):
                raise unexpected(line, "a predicate register after '@'", token)
            predicate, token = Predicate(register, negated), stream.take()
        elif stream.peek() == ":":
            stream.at += 1
            self._label(token, line)
            return
        opcode, modifiers = _opcode(token)
        if not opcode:
            raise unexpected(line, "an instruction, a label, a directive or '}'", token)
        statement = stream.statement()
        if statement.tokens and statement.tokens[0][0] == ".":
            modifiers += _modifiers(statement)
        parsed_operands = operands(statement, scope, opcode == "call")
        if opcode in ("bra", "brx", "call"):
            parsed_operands = _with_targets(opcode, parsed_operands, block, line)
            self._branches.append(len(self.instructions))
        self.instructions.append(
            Instruction(opcode, modifiers, parsed_operands, predicate, line, self._locations.current, block)
        )

    def _label(self, name: str, line: int) -> None:
        """Record a label, or a table or prototype with its label."""
        stream, label = self.stream, Label(name, self.scope.block)
        if not NAME.fullmatch(name) or name.startswith("%"):
            raise unexpected(line, "a label before ':'", name)
        if self._exists(label):
            raise error(line, f"the label {name} stands in this block a second time")
        following = stream.peek()
        if following in (".branchtargets", ".calltargets"):
            stream.take()
            statement = stream.statement()
            listed = statement.names("a name")
            statement.finish()
            branches = following == ".branchtargets"
            self.targets[label] = tuple(Label(n, label.block) if branches else Symbol(n) for n in listed)
            self._tables[label] = line
        elif following == ".callprototype":
            stream.take()
            returns = declarations.parameters(stream)
            stream.name("'_' in a prototype")
            self.prototypes[label] = Prototype(returns, declarations.parameters(stream))
            stream.statement()
        else:
            self.labels[label] = len(self.instructions)

    def _directive(self, token: str) -> None:
        stream, block = self.stream, self.scope.block
        if token == ".loc":
            self._locations.read(stream)
        elif token == ".reg":
            for registers in declarations.registers(stream.statement(), block):
                self.registers.append(registers)
                self.scope.declare_registers(registers)
        elif token == ".pragma":
            self.pragmas += declarations.pragmas(stream)
        elif token in LINKAGE or is_space(token[1:]):
            linkage = stream.take()[1:] if token in LINKAGE else ""
            for variable in declarations.variables(stream.statement(), linkage, block):
                self.variables.append(variable)
                self.scope.declare(Symbol(variable.name, block))
        else:
            raise stream.fail("an instruction or a directive of a function's body")

    def _resolve(self) -> None:
        """Resolve the names in every branch and table to labels, the innermost block's first."""
        for i in self._branches:
            self.instructions[i] = with_labels(self.instructions[i], self._resolve_label)
        for table, line in self._tables.items():
            listed = self.targets[table]
            self.targets[table] = tuple(self._resolve_label(x, line) if isinstance(x, Label) else x for x in listed)

    def _exists(self, label: Label) -> bool:
        return label in self.labels or label in self.targets or label in self.prototypes

    def _resolve_label(self, label: Label, line: int) -> Label:
        block = label.block
        while block >= 0:
            here = Label(label.name, block)
            if self._exists(here):
                return here
            block = self.blocks[block]
        raise error(line, f"expected a label {label.name[:40]} in or around this block, found none")


def with_labels(instruction: Instruction, resolve: Callable[[Label, int], Label]) -> Instruction:
    """Return the instruction with each label replaced by `resolve(label, line)`."""
    replaced = (resolve(o, instruction.line) if isinstance(o, Label) else o for o in instruction.operands)
    return replace(instruction, operands=tuple(replaced))


@lru_cache(maxsize=8192)
def _opcode(token: str) -> tuple[str, tuple[str, ...]]:
    """Split `ld.global.u32` into `ld` and its modifiers; the opcode is empty if the token is not one."""
    opcode, *modifiers = token.split(".")
    return (opcode, tuple(modifiers)) if _OPCODE.fullmatch(opcode) else ("", ())


def _modifiers(statement: Cursor) -> tuple[str, ...]:
    """Take modifiers separated from the opcode by a blank: `mov .u32`."""
    modifiers = list[str]()
    while (token := statement.peek()).startswith(".") and literal(token) is None:
        modifiers.append(statement.take()[1:])
    return tuple(modifiers)


def _with_targets(opcode: str, operands: tuple[Operand, ...], block: int, line: int) -> tuple[Operand, ...]:
    """Return the operands of a branch or call, with labels in place of the symbols for its targets: positions, a table
    or a prototype."""
    callee = 1 if operands and isinstance(operands[0], Arguments) else 0
    first = {"bra": 0, "brx": 1}.get(opcode, callee + 1)
    if len(operands) < (first if opcode == "call" else first + 1):
        raise unexpected(line, f"where to go after {opcode}", ";")
    if opcode != "call" and (other := next((o for o in operands[first:] if not isinstance(o, Symbol)), None)):
        raise unexpected(line, f"a label after {opcode}", other)
    targets = (Label(o.name, block) if isinstance(o, Symbol) else o for o in operands[first:])
    return (*operands[:first], *targets)
