"""One instruction with everything known about it. The table of a kernel is a list of these, in order of address."""

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
    """Sixteen bytes as the cubin holds them, in hex."""
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
    """Of a memory access: `global`, `shared`, `local`, `constant`, `generic`; else empty."""
    width: int | None
    """Bits that each thread moves in a memory access."""
    live_registers: int | None
    """General registers live before it, and those it writes; None if the kernel has an instruction without a rule."""
    source_file: str | None
    source_line: int | None
    inlined: tuple[tuple[str, int], ...]
    """Where that line was inlined, innermost caller first."""
    ptx_line: int | None
    """1-based, in the PTX the cubin was assembled from."""
    ir_line: int | None
    """1-based, in the intermediate representation (Triton: TTGIR), where there is one."""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))
