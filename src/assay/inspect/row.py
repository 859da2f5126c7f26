"""One instruction with everything known about it. A kernel's table is a list of rows, in order of address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    address: int
    opcode: str
    """With its modifiers: `LDG.E.128`."""
    text: str
    """As the disassembler prints it, without comments."""
    predicate: str
    operands: tuple[str, ...]
    encoding: str
    """The sixteen bytes in the cubin, in hex."""
    stall: int
    may_yield: bool
    write_barrier: int | None
    read_barrier: int | None
    waits: tuple[int, ...]
    reuse: tuple[int, ...]
    block: int
    """Number of its basic block, in order of address."""
    loop_depth: int
    pipe: str
    """`fma`, `alu`, `mufu`, `lsu`, `tensor`, …: see isa/pipes.py."""
    space: str
    """Address space of a memory access (`global`, `shared`, `local`, `constant`, `generic`), else empty."""
    width: int | None
    """Bits that each thread moves in a memory access."""
    live_registers: int | None
    """General registers live before the instruction, plus those it writes; None if no rule covers some instruction of
    the kernel."""
    source_file: str | None
    source_line: int | None
    inlined: tuple[tuple[str, int], ...]
    """The places where that line was inlined, innermost caller first."""
    ptx_line: int | None
    """1-based, in the PTX the cubin was assembled from."""
    ir_line: int | None
    """1-based, in the intermediate representation (Triton: TTGIR), if there is one."""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))
