"""A PTX module and its functions."""

from dataclasses import dataclass, field
from functools import cached_property

from assay.errors import SourceError
from assay.isa.ptx.declarations import Prototype, Registers, Variable, prefix
from assay.isa.ptx.instruction import Instruction
from assay.isa.ptx.operands import Label, Register, Symbol, listed


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
    """False if it is only declared."""
    registers: tuple[Registers, ...] = ()
    variables: tuple[Variable, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    labels: dict[Label, int] = field(default_factory=dict)
    """The index of the instruction after each label; the number of instructions for a label at the end."""
    targets: dict[Label, tuple[Label | Symbol, ...]] = field(default_factory=dict)
    """The tables of .branchtargets and .calltargets."""
    prototypes: dict[Label, Prototype] = field(default_factory=dict)
    blocks: tuple[int, ...] = ()
    """The parent of each block; -1 for the first, which is the function's own."""

    def declaration(self, register: Register) -> Registers | None:
        """Return the .reg that declares the register, or None."""
        declarations = (self._declarations.get((register.block, key)) for key in (register.name, prefix(register.name)))
        return next(filter(None, declarations), None)

    @cached_property
    def _declarations(self) -> dict[tuple[int, str], Registers]:
        return {(r.block, r.name): r for r in self.registers}


@dataclass(frozen=True)
class Module:
    version: tuple[int, int]
    target: str
    """`sm_90a`"""
    options: tuple[str, ...]
    """The words after the architecture in .target: `debug`."""
    address_size: int
    files: dict[int, str]
    globals: tuple[Variable, ...]
    functions: tuple[Function, ...]
    """In order. A function that is declared first and defined later appears twice."""
    strings: dict[str, str]
    """The texts in .debug_str by label: names of inlined functions."""
    aliases: dict[str, str]
    pragmas: tuple[str, ...]

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels."""
        return tuple(f for f in self.functions if f.kind == "entry" and f.defined)

    def function(self, name: str) -> Function:
        """Return the function of that name: its definition if there is one, else its declaration."""
        namesakes = sorted((f for f in self.functions if f.name == name), key=lambda f: not f.defined)
        if not namesakes:
            raise SourceError(
                f"the PTX holds no function called {name}", fix=f"it has {listed(f.name for f in self.functions)}"
            )
        return namesakes[0]
