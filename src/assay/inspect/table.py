"""Builds a kernel's table: one row per instruction of its machine code, with everything known about it."""

from __future__ import annotations

from dataclasses import dataclass

from assay.errors import AssayError
from assay.inspect import ir as intermediate
from assay.inspect.row import Row
from assay.isa import pipes, sass
from assay.isa.control import control
from assay.isa.cubin import functions
from assay.isa.flow import Block, blocks
from assay.isa.live import Live, live_registers
from assay.isa.ptx import Spot, line_table

_NO_CONTROL = (0, 0)


@dataclass(frozen=True)
class Table:
    symbol: str
    rows: tuple[Row, ...]
    blocks: tuple[Block, ...]
    uncounted: str
    """Why live registers are not counted in this code; empty if they are."""

    @property
    def live(self) -> bool:
        return not self.uncounted


def tables(cubin: bytes, ptx: str = "", ir: str = "") -> dict[str, Table]:
    """Return the table of every kernel in a cubin, by symbol."""
    code = sass.disassemble(cubin)
    live = live_registers(code, {f.symbol: f.registers for f in functions(cubin)})
    spots, lines = line_table(ptx), intermediate.Lines(ir)
    return {symbol: _table(function, live[symbol], spots, lines) for symbol, function in code.items()}


def table(cubin: bytes, symbol: str, ptx: str = "", ir: str = "") -> Table:
    kernels = tables(cubin, ptx, ir)
    if symbol not in kernels:
        raise AssayError(f"the cubin holds no kernel called {symbol}", fix=f"it holds: {', '.join(kernels) or 'none'}")
    return kernels[symbol]


def _table(function: sass.Function, live: Live, spots: list[Spot | None], lines: intermediate.Lines) -> Table:
    pieces = blocks(function)
    rows = tuple(_row(i, block, live, spots, lines) for block in pieces for i in block.instructions)
    return Table(function.symbol, rows, tuple(pieces), live.unknown)


def _row(i: sass.Instruction, block: Block, live: Live, spots: list[Spot | None], lines: intermediate.Lines) -> Row:
    encoding = i.encoding or _NO_CONTROL
    control_code = control(encoding)
    spot = spots[i.ptx - 1] if i.ptx and i.ptx <= len(spots) else None
    chain = tuple((p.file, p.line) for p in i.inlined) or (spot.chain if spot else ())
    return Row(
        address=i.address,
        opcode=i.name,
        text=i.text,
        predicate=i.predicate,
        operands=i.operands,
        encoding=b"".join(word.to_bytes(8, "little") for word in encoding).hex(),
        stall=control_code.stall,
        may_yield=control_code.may_yield,
        write_barrier=control_code.write_barrier,
        read_barrier=control_code.read_barrier,
        waits=control_code.waits,
        reuse=control_code.reuse,
        block=block.number,
        loop_depth=block.loop_depth,
        pipe=pipes.pipe(i.opcode, i.modifiers),
        space=pipes.space(i.opcode),
        width=pipes.width(i.opcode, i.modifiers),
        live_registers=live.counts.get(i.address),
        source_file=i.source.file if i.source else None,
        source_line=i.source.line if i.source else None,
        inlined=chain,
        ptx_line=i.ptx,
        ir_line=lines.of(spot, i.source),
    )
