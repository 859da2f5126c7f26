"""Operands of instructions. `str` of an operand is its PTX."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MODULE = -1
"""The block of names that are declared outside all functions: global variables and functions."""


@dataclass(frozen=True, slots=True)
class Register:
    name: str
    """`%r12`, or any name that a .reg declares: inline PTX uses names such as `p` and `n`."""
    block: int = 0
    """The block that declares it. The same name in another block is another register."""
    part: str = ""
    """Part of a register: `x` of a vector register, `b0` or `h1` of a scalar one."""
    sign: str = ""
    """`!` or `-` if the instruction negates it."""

    def __str__(self) -> str:
        return f"{self.sign}{self.name}.{self.part}" if self.part else self.sign + self.name


@dataclass(frozen=True, slots=True)
class Special:
    """A register that the hardware sets."""

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
        """The bit pattern of a float, 32 bits for `0f…` and 64 for all others; the low 64 bits of an integer."""
        if isinstance(self.value, int):
            return self.value % 2**64
        if self.text[1] in "dDfF":
            return int(self.text[2:], 16)
        return int.from_bytes(struct.pack(">d", self.value))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, a parameter or a function, by name. Outside brackets it means its address."""

    name: str
    block: int = MODULE
    """The block that declares it."""
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.offset else self.name


@dataclass(frozen=True, slots=True)
class Label:
    """A position in a function, or a table of positions declared there."""

    name: str
    block: int = 0
    """The block that contains it. The same name in another block is another label."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a result that is discarded."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class Vector:
    """`{%f1, _, %f3, %f4}`"""

    items: tuple[Operand, ...]

    def __str__(self) -> str:
        return "{" + listed(self.items) + "}"


@dataclass(frozen=True, slots=True)
class Address:
    """`[%rd1+16]`; an address in a tensor or a texture also has coordinates: `[%rd1, {%r1, %r2}]`."""

    base: Register | Symbol | None
    """None if the address is a number."""
    offset: int = 0
    more: tuple[Operand, ...] = ()

    def __str__(self) -> str:
        parts = [str(part) for part in (self.base, self.offset) if part] or ["0"]
        return f"[{listed(('+'.join(parts), *self.more))}]"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two results: `%p1|%p2`."""

    first: Register | Sink
    second: Register | Sink

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments or the results of a call: `(param0, param1)`."""

    items: tuple[Operand, ...]

    def __str__(self) -> str:
        return f"({listed(self.items)})"


Operand = Register | Special | Immediate | Symbol | Label | Sink | Vector | Address | Pair | Arguments


@dataclass(frozen=True, slots=True)
class Predicate:
    register: Register
    negated: bool = False

    def __str__(self) -> str:
        return f"@!{self.register}" if self.negated else f"@{self.register}"


def listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def names(operands: Iterable[Operand | None]) -> Iterator[Register | Symbol | Label]:
    """Yield every register, symbol and label in the operands, in the order of the text."""
    for o in operands:
        if isinstance(o, Register | Symbol | Label):
            yield o
        elif isinstance(o, Vector | Arguments):
            yield from names(o.items)
        elif isinstance(o, Address):
            yield from names((o.base, *o.more))
        elif isinstance(o, Pair):
            yield from names((o.first, o.second))
