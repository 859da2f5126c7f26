"""Declarations of a module and its functions: variables, parameters and registers."""

from dataclasses import dataclass, field
from math import prod

from assay.isa.ptx.operands import MODULE
from assay.isa.ptx.types import bits


@dataclass(frozen=True, slots=True)
class Pointer:
    """The memory that a parameter points to, as declared by its .ptr."""

    space: str
    align: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, or a parameter of a function."""

    space: str
    type: str
    name: str
    align: int = 0
    """In bytes; 0 if the type's own alignment applies."""
    vector: int = 1
    shape: tuple[int, ...] = ()
    """The lengths of an array; 0 is an open length, `[]`."""
    initialiser: str = ""
    linkage: str = ""
    pointer: Pointer | None = None
    attributes: tuple[str, ...] = ()
    block: int = MODULE
    line: int = field(default=1, compare=False)

    @property
    def size(self) -> int:
        """Size in bytes; 0 if the length is open or the type has no size."""
        return bits(self.type) // 8 * self.vector * prod(self.shape)


@dataclass(frozen=True, slots=True)
class Registers:
    """A .reg declaration: `%r<20>` declares `%r0` to `%r19`; a single register has no count."""

    type: str
    name: str
    count: int | None = None
    vector: int = 1
    block: int = 0
    line: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Prototype:
    """The results and the parameters of a call through a pointer."""

    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]


def prefix(register: str) -> str:
    """Return the name under which numbered registers are declared together: `%r12` → `%r`."""
    return register.rstrip("0123456789")
