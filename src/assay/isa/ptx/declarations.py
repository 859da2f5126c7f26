"""What a module and its functions declare: variables, parameters and registers."""

from dataclasses import dataclass, field
from math import prod

from assay.isa.ptx.operands import MODULE
from assay.isa.ptx.types import bits


@dataclass(frozen=True, slots=True)
class Pointer:
    """What the .ptr of a parameter says about the memory that it points to."""

    space: str
    align: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, or a parameter of a function."""

    space: str
    type: str
    name: str
    align: int = 0
    """In bytes; 0 where the type's own alignment applies."""
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
        """In bytes; 0 where the length is open, and for types that have no size."""
        return bits(self.type) // 8 * self.vector * prod(self.shape)


@dataclass(frozen=True, slots=True)
class Registers:
    """A .reg: `%r<20>` declares `%r0` to `%r19`; a single register has no count."""

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
    """The name under which a register is declared together with others: `%r12` → `%r`."""
    return register.rstrip("0123456789")
