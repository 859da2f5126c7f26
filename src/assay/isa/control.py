"""The control code in an instruction's encoding (Volta and later), which the compiler sets for the scheduler."""

from dataclasses import dataclass

_NO_BARRIER = 7


@dataclass(frozen=True)
class Control:
    stall: int
    """Cycles before the same warp may issue the next instruction."""
    may_yield: bool
    """Whether the scheduler may switch to another warp."""
    write_barrier: int | None
    """The scoreboard that is released when the result is written."""
    read_barrier: int | None
    """The scoreboard that is released when the operands are read."""
    waits: tuple[int, ...]
    """Scoreboards that must be released before it issues."""
    reuse: tuple[int, ...]
    """Operand slots whose registers stay in the reuse cache for the next instruction."""


def control(encoding: tuple[int, int]) -> Control:
    """Return the control code of an encoding, given as its low and high 64-bit words."""
    word = encoding[1]
    write, read = (word >> 46) & 7, (word >> 49) & 7
    return Control(
        stall=(word >> 41) & 15,
        may_yield=not (word >> 45) & 1,
        write_barrier=None if write == _NO_BARRIER else write,
        read_barrier=None if read == _NO_BARRIER else read,
        waits=tuple(i for i in range(6) if (word >> 52 + i) & 1),
        reuse=tuple(i for i in range(4) if (word >> 58 + i) & 1),
    )
