"""Computes a summary from a kernel's table: resources, occupancy, mix, widths, loops, cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from assay.inspect.evidence import Loop, MultiplyAdd, Occupancy, Shared, Spills, Summary
from assay.inspect.occupancy import occupancy
from assay.inspect.occupancy import table as over_blocks
from assay.inspect.row import Row
from assay.inspect.table import Table
from assay.isa.chips import chip
from assay.isa.cubin import Function
from assay.isa.flow import Block
from assay.target import Target

ASSUMPTIONS = (
    "cycles: the stall counts of the control codes, one warp alone, every load and barrier answered at once",
    "copies: how often the same memory access, special function or matrix product stands in a loop's body",
)


def summary(
    table: Table,
    function: Function,
    target: Target,
    block: int | None,
    dynamic_shared: int,
    remarks: list[str] | None,
) -> Summary:
    """Return everything that a record contains besides the instructions. `block` is the number of threads in a block,
    if known."""
    rows = table.rows
    issue = _issue(rows)
    return Summary(
        instructions=len(rows),
        registers=function.registers,
        stack=function.stack,
        spills=spills(rows),
        shared=Shared(function.shared, dynamic_shared),
        live_registers=max((r.live_registers or 0 for r in rows), default=0) if table.live else None,
        occupancy=_occupancy(function, target, block, dynamic_shared),
        mix=dict(Counter(r.pipe for r in rows).most_common()),
        widths=widths(rows),
        multiply_add=_multiply_add(rows),
        predicated=sum(bool(r.predicate) for r in rows) / max(1, len(rows)),
        loops=_loops(table),
        cycles_per_block=issue,
        cycles=_longest_way(table.blocks, issue),
        assumptions=list(ASSUMPTIONS),
        remarks=remarks,
    )


def spills(rows: Sequence[Row]) -> Spills:
    """Return the bytes that each thread stores to and loads from local memory if every such instruction runs once."""
    moved = {"STL": 0, "LDL": 0}
    for row in rows:
        name = row.opcode.split(".")[0]
        if name in moved:
            moved[name] += (row.width or 32) // 8
    return Spills(moved["STL"], moved["LDL"])


def widths(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Count the accesses by kind and by width in bits: `{"global load": {"128": 4}}`."""
    kinds: dict[str, Counter[str]] = {}
    for row in rows:
        if row.space and row.width:
            kinds.setdefault(f"{row.space} {access(row)}", Counter())[str(row.width)] += 1
    return {kind: dict(sorted(counts.items(), key=lambda item: int(item[0]))) for kind, counts in sorted(kinds.items())}


def access(row: Row) -> str:
    name = row.opcode.split(".")[0]
    if name.startswith(("ATOM", "RED")):
        return "atomic"
    return "store" if name.startswith("ST") else "load"


def _issue(rows: Sequence[Row]) -> dict[int, int]:
    """Return the cycles that one warp needs to issue each block."""
    cycles: Counter[int] = Counter()
    for row in rows:
        cycles[row.block] += max(1, row.stall)
    return dict(cycles)


def _longest_way(blocks: Sequence[Block], issue: Mapping[int, int]) -> int | None:
    """Return the cycles of the longest path through the kernel; None if it has a loop, whose trip count is unknown."""
    follows = {b.number: b.follows for b in blocks}
    reached = {blocks[0].number} if blocks else set()
    for block in blocks:  # the branch to itself after the last exit is unreachable
        reached |= set(block.follows) if block.number in reached else set()
    longest: dict[int, int] = {}
    for number in sorted(reached, reverse=True):
        if any(follower <= number for follower in follows[number]):
            return None
        longest[number] = issue.get(number, 0) + max((longest[f] for f in follows[number]), default=0)
    return max(longest.values(), default=0)


def _multiply_add(rows: Sequence[Row]) -> MultiplyAdd:
    """Count fused and separate floating-point multiplies and adds."""
    names = Counter(r.opcode.split(".")[0] for r in rows)
    fused = sum(names[n] for n in ("FFMA", "FFMA2", "HFMA2", "DFMA"))
    apart = {kind: sum(names[f"{p}{kind}"] + names[f"{p}{kind}2"] for p in "FHD") for kind in ("MUL", "ADD")}
    return MultiplyAdd(fused, apart["MUL"], apart["ADD"])


def _occupancy(function: Function, target: Target, block: int | None, dynamic: int) -> Occupancy:
    known = chip(target)
    if known is None or function.registers is None:
        why = f"nothing is known of {target}" if known is None else "the cubin names no registers"
        return Occupancy(unavailable=why)
    shared = function.shared + dynamic
    if block:
        return occupancy(known, block, function.registers, shared)
    return Occupancy(by_block=over_blocks(known, function.registers, shared))


def _loops(table: Table) -> list[Loop]:
    """Return the innermost loops: consecutive blocks of the same, greatest depth, closed by a backward branch."""
    innermost = []
    by_number = {b.number: b for b in table.blocks}
    place = {r.address: i for i, r in enumerate(table.rows)}
    for block in table.blocks:
        for header in block.follows:
            if header > block.number or not block.loop_depth:
                continue
            start = by_number[header]
            inside = table.rows[place[start.start] : place[block.end] + 1]
            deepest = max(r.loop_depth for r in inside)
            if start.loop_depth < deepest:
                continue
            same = Counter((r.source_file, r.source_line, r.inlined, r.opcode) for r in inside if r.pipe in _WORK)
            innermost.append(
                Loop(
                    start=start.start,
                    end=block.end,
                    depth=start.loop_depth,
                    instructions=len(inside),
                    line=next((r.source_line for r in inside if r.source_line), None),
                    copies=max(same.values(), default=1),
                    cycles=sum(max(1, r.stall) for r in inside),
                )
            )
    return innermost


_WORK = ("xu", "tensor", "lsu")
