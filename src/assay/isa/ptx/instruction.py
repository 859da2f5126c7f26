"""One instruction, and the place in the source that it was compiled from."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.isa.ptx.operands import Label, Operand, Predicate, Register, Symbol, listed, names
from assay.isa.ptx.types import spaces, types, vector


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the source, from a .loc directive."""

    file: int
    """A key of Module.files."""
    line: int
    column: int
    function: str = ""
    """For inlined code, the label of the function's name: a key of Module.strings."""
    inlined: tuple[Location, ...] = ()
    """The calls through which it was inlined, innermost first."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction. Two are equal if they do the same to the same operands, wherever they are in the text."""

    opcode: str
    """`ld`"""
    modifiers: tuple[str, ...]
    """`("global", "nc", "L1::no_allocate", "v4", "u32")`"""
    operands: tuple[Operand, ...] = ()
    predicate: Predicate | None = None
    line: int = field(default=1, compare=False)
    """The line of the text on which it begins, counted from 1."""
    location: Location | None = field(default=None, compare=False)
    block: int = field(default=0, compare=False)
    """The innermost { } around it, as an index into Function.blocks; 0 is the function's own."""

    @property
    def name(self) -> str:
        """`ld.global.nc.v4.u32`"""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def types(self) -> tuple[str, ...]:
        """The data types among the modifiers, in order: `("f32", "bf16", "bf16", "f32")`."""
        return types(self.modifiers)

    @property
    def spaces(self) -> tuple[str, ...]:
        """The memories it names, in order. A copy names two, its destination first."""
        return spaces(self.modifiers)

    @property
    def space(self) -> str:
        """The first memory it names, `shared::cta`; empty if it names none."""
        return next(iter(self.spaces), "")

    @property
    def vector(self) -> int:
        """The number of elements it moves at once: 4 for `.v4`."""
        return vector(self.modifiers)

    @property
    def names(self) -> tuple[Register | Symbol | Label, ...]:
        """Every register, symbol and label in it: first the predicate, then the operands in order."""
        predicate = (self.predicate.register,) if self.predicate else ()
        return (*predicate, *names(self.operands))

    @property
    def text(self) -> str:
        """`@!%p1 ld.global.u32 %r1, [%rd1+16]`. Equal instructions have the same text."""
        words = (str(self.predicate or ""), self.name, listed(self.operands))
        return " ".join(word for word in words if word)
