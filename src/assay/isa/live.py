"""Counts the live general registers at every instruction as `nvdisasm -plr` does, but in linear time and for code of
any ptxas generation.

The count at an instruction covers the registers that are live before it and those that it writes, whether or not they
are read later. Liveness is propagated backwards through stretches of code with one entry and any number of exits.
Within a stretch, a predicated write does not end a live range. Between stretches every write does, so a value that is
written under a predicate and read in a later stretch counts from its write on. R1, the stack pointer, is live at every
exit of a stretch. Every call follows the ABI: it reads R0 and R1, and overwrites those caller-saved registers that the
caller was given and that the cubin names. A return keeps all callee-saved registers live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from assay.isa.registers import touched
from assay.isa.sass import Function, Instruction

_R0, _STACK = 1 << 0, 1 << 1
_FREE = sum(1 << r for r in (0, *range(3, 16), *(r for r in range(32, 255) if r % 8 < 4)))
"""Registers that a function may overwrite without saving them, by the ABI."""
_BY_REGISTER = ("BRX", "BRXU", "JMX", "JMXU")
_TURNS = ("BRA", "JMP", "BSYNC", "CALL", "RET", "EXIT", *_BY_REGISTER)
"""Opcodes that may change control flow. All others continue at the next instruction, even those that name a label
(LEPC, WARPSYNC)."""


@dataclass(frozen=True)
class Live:
    counts: dict[int, int]
    """Number of live general registers by address."""
    unknown: str = ""
    """The reason if registers are not counted."""


class _Step(NamedTuple):
    """An instruction's effect on the live registers, one bit per register, and its successors."""

    reads: int
    writes: int
    leaves: int
    """Registers that are live after it because the function ends there."""
    always: bool
    """True if the instruction is not predicated."""
    jumps: tuple[int, ...]
    falls: bool


class _Stretch(NamedTuple):
    start: int
    """Position of its first instruction."""
    end: int
    """Position after its last instruction."""


class _Unknown(Exception):
    """Raised with the reason why the registers of a function cannot be counted."""

    def __init__(self, instruction: Instruction, what: str) -> None:
        super().__init__(f"of {instruction.name} at {instruction.address:#x} it is not known {what}")


def live_registers(code: Mapping[str, Function], registers: Mapping[str, int | None]) -> dict[str, Live]:
    """Return the live registers of every function of a cubin, by symbol. `registers` is how many each was given."""
    live: dict[str, Live] = {}
    steps: dict[str, list[_Step]] = {}
    for symbol, function in code.items():
        try:
            steps[symbol] = [_step(function, i, registers.get(symbol)) for i in function.instructions]
        except _Unknown as problem:
            live[symbol] = Live({}, str(problem))
    touches = (step.reads | step.writes | step.leaves for each in steps.values() for step in each)
    named = (1 << max((bits.bit_length() for bits in touches), default=0)) - 1
    for symbol, each in steps.items():
        function, overwritten = code[symbol], _FREE & named & _owned(registers.get(symbol))
        for at, instruction in enumerate(function.instructions):
            if instruction.opcode == "CALL":
                each[at] = each[at]._replace(writes=overwritten)
        live[symbol] = Live(_counts(function, each))
    return live


def _owned(registers: int | None) -> int:
    return (1 << (registers or 0)) - 1


def _step(function: Function, instruction: Instruction, registers: int | None) -> _Step:
    """Return the step of one instruction; `live_registers` adds the registers that a call overwrites."""
    touches = touched(instruction)
    if touches is None:
        raise _Unknown(instruction, "which registers it touches")
    opcode, always = instruction.opcode, not instruction.predicate
    if opcode not in _TURNS:
        return _Step(touches.reads, touches.writes, 0, always, (), True)
    if opcode in ("CALL", "RET") and registers is None:
        raise _Unknown(instruction, "how many registers its function was given")
    jumps = function.goes_to(instruction)
    if opcode in _BY_REGISTER and not jumps:
        raise _Unknown(instruction, "where it goes")
    reads = touches.reads | (_R0 | _STACK if opcode == "CALL" else 0)
    leaves = _STACK if opcode == "EXIT" else ~_FREE & _owned(registers) if opcode == "RET" else 0
    # A branch with a second operand (`BRA.DIV UR6, …`) or with an unknown target may not be taken.
    ends = len(instruction.operands) == 1 if opcode in ("BRA", "JMP") else opcode != "CALL"
    falls = not (always and ends and (jumps or leaves))
    return _Step(reads, touches.writes, leaves, always, jumps, falls)


def _counts(function: Function, steps: Sequence[_Step]) -> dict[int, int]:
    stretches, number = _stretches(function, steps)
    entering = _entering(stretches, number, steps)
    counts = {}
    for this, (start, end) in enumerate(stretches):
        live = entering[this + 1] if steps[end - 1].falls else 0
        for at in range(end - 1, start - 1, -1):
            reads, writes, leaves, always, jumps, _ = steps[at]
            for target in jumps:
                live |= entering[number[target]]
            live |= leaves
            if always:
                live &= ~writes
            live |= reads
            counts[function.instructions[at].address] = (live | writes).bit_count()
    return counts


def _stretches(function: Function, steps: Sequence[_Step]) -> tuple[list[_Stretch], dict[int, int]]:
    """Return the stretches in order, and the number of each by its first address."""
    called = (t for i in function.instructions if i.opcode == "CALL" for t in i.targets)
    starts = {function.labels[label] for label in called if label in function.labels}
    starts.update(target for step in steps for target in step.jumps)
    begins = [
        at
        for at, instruction in enumerate(function.instructions)
        if at == 0 or not steps[at - 1].falls or instruction.address in starts
    ]
    stretches = [_Stretch(start, end) for start, end in pairwise([*begins, len(steps)])]
    return stretches, {function.instructions[s.start].address: number for number, s in enumerate(stretches)}


def _entering(stretches: Sequence[_Stretch], number: Mapping[int, int], steps: Sequence[_Step]) -> list[int]:
    """Return the registers that are live on entry to each stretch, as its predecessors see it; none after the last."""
    live: list[int] = []
    ways: list[list[tuple[int, int]]] = []
    """For each stretch, its successors and the registers that it has written before going there."""
    before: list[list[int]] = [[] for _ in range(len(stretches) + 1)]
    for this, (start, end) in enumerate(stretches):
        reads = written = replaced = 0
        out: list[tuple[int, int]] = []
        for step in steps[start:end]:
            reads |= step.reads & ~replaced
            written |= step.writes
            if step.always:
                replaced |= step.writes
            reads |= step.leaves & ~replaced
            out += ((number[target], written) for target in step.jumps)
        if steps[end - 1].falls:
            out.append((this + 1, written))
        live.append(reads | _STACK)
        ways.append(out)
        for target, _ in out:
            before[target].append(this)
    live.append(0)
    waiting = dict.fromkeys(range(len(stretches)))
    while waiting:
        this, _ = waiting.popitem()
        now = live[this]
        for target, written in ways[this]:
            now |= live[target] & ~written
        if now != live[this]:
            live[this] = now
            waiting.update(dict.fromkeys(before[this]))
    return live
