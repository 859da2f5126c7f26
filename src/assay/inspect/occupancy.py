"""Computes how many warps of a kernel fit on a multiprocessor, which resource limits them, and how to lift the
limit."""

from __future__ import annotations

from assay.inspect.evidence import Occupancy
from assay.isa.chips import Chip

WARP = 32
_REGISTER_UNIT = 256
"""Registers are allocated to a warp in units of this many."""
_WARP_UNIT = 4
"""A multiprocessor has four partitions, and warps are spread over them."""
_SHARED_UNIT = 128
BLOCKS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


def occupancy(chip: Chip, block: int, registers: int, shared: int) -> Occupancy:
    """Return the occupancy of blocks of `block` threads with `registers` each and `shared` bytes, static plus
    dynamic."""
    warps = -(-block // WARP)
    fits = _fits(chip, warps, registers, shared)
    blocks = min(fits.values())
    limits = tuple(name for name, most in fits.items() if most == blocks)
    held = blocks * warps
    lift = _lift(chip, warps, registers, shared, blocks, limits)
    return Occupancy(block, blocks, held, held / (chip.threads // WARP), limits, lift)


def _fits(chip: Chip, warps: int, registers: int, shared: int) -> dict[str, int]:
    """Return the number of blocks that each resource allows."""
    each = _rounded(max(1, registers) * WARP, _REGISTER_UNIT)
    return {
        "registers": chip.registers // each // _WARP_UNIT * _WARP_UNIT // warps,
        "shared memory": chip.shared // _rounded(shared + chip.reserved, _SHARED_UNIT),
        "warps": chip.threads // WARP // warps,
        "blocks": chip.blocks,
    }


def table(chip: Chip, registers: int, shared: int) -> tuple[Occupancy, ...]:
    """Return the occupancy for each of several block sizes."""
    return tuple(occupancy(chip, block, registers, shared) for block in BLOCKS)


def _lift(chip: Chip, warps: int, registers: int, shared: int, blocks: int, limits: tuple[str, ...]) -> str:
    """Describe the smallest change to the limiting resource that makes room for more blocks."""
    if limits == ("registers",):
        most = chip.registers // _rounded((blocks + 1) * warps, _WARP_UNIT) // _REGISTER_UNIT * _REGISTER_UNIT // WARP
        then = min(_fits(chip, warps, most, shared).values()) if most else 0
        return f"{most} registers a thread make room for {then} blocks" if then > blocks else ""
    if limits == ("shared memory",):
        room = chip.shared // (blocks + 1) // _SHARED_UNIT * _SHARED_UNIT - chip.reserved
        then = min(_fits(chip, warps, registers, room).values()) if room >= 0 else 0
        return f"{room} bytes of shared memory a block make room for {then} blocks" if then > blocks else ""
    return ""


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
