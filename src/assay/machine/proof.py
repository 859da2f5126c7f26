"""Checks a probe's machine code before its measurement counts, on the same cubin that is launched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from assay.isa import sass

_MEMORY = re.compile(r"(LD|ST|ATOM|RED)[GLS]?|LDSM|LDGSTS|STSM|CCTL")
"""Opcodes that access memory; constant loads (LDC) do not count."""
_SHOWN = 24
"""Lines of a listing that a failed proof quotes."""


@dataclass(frozen=True)
class Finding:
    held: bool
    says: str
    lines: tuple[str, ...] = ()
    """The offending lines of the listing."""


@dataclass(frozen=True)
class Proof:
    """Requirements on a kernel's machine code. Patterns are shell-like, over opcode and modifiers: `LDG.E.128*`. The
    measured loop is the innermost loop with the most matches of the first pattern. The kernel must not spill (LDL,
    STL), and the loop may access memory only with instructions that match a pattern."""

    loop: Mapping[str, int] = field(default_factory=dict)
    """The exact number of matches of each pattern in the measured loop."""
    others: int | None = None
    """The most other instructions in that loop, since loop overhead must not limit a peak rate."""
    chain: str = ""
    """A pattern of instructions that each use the result of the previous one as their address: a pointer chase."""
    empty: bool = False
    """Whether the kernel must do nothing at all."""

    def __str__(self) -> str:
        if self.empty:
            return "nothing but EXIT"
        parts = [" and ".join(f"exactly {n} {pattern}" for pattern, n in self.loop.items()) + " in the loop"]
        if self.chain:
            parts.append("each addressed by the one before")
        if self.others is not None:
            parts.append(f"at most {self.others} others")
        return ", ".join([*parts, "no spills"])

    def check(self, function: sass.Function) -> Finding:
        if self.empty:
            return _does_nothing(function)
        if spills := [i for i in function.instructions if i.opcode in ("LDL", "STL")]:
            return _failed(f"it spills: {len(spills)} accesses to local memory", spills)
        first = next(iter(self.loop))
        body = max(
            (loop.instructions for loop in sass.loops(function)), key=lambda b: len(_matching(first, b)), default=()
        )
        for pattern, wanted in self.loop.items():
            matching = _matching(pattern, body)
            if len(matching) != wanted:
                where = list(matching) or list(body) or list(function.instructions)
                return _failed(f"the loop holds {len(matching)} {pattern}, not {wanted}", where)
        rest = [i for i in body if not _padding(i) and not any(fnmatchcase(i.name, p) for p in self.loop)]
        if stray := [i for i in rest if _MEMORY.fullmatch(i.opcode)]:
            return _failed("the loop touches memory in other ways", stray)
        if self.others is not None and len(rest) > self.others:
            return _failed(f"the loop holds {len(rest)} other instructions, more than {self.others}", rest)
        if self.chain and (broken := _broken(_matching(self.chain, body))):
            return _failed(f"not every {self.chain} is addressed by the one before", broken)
        return Finding(True, f"{self}: held, {len(rest)} others")


def _padding(instruction: sass.Instruction) -> bool:
    """Return whether the compiler inserted it to wait for the tensor cores: NOP, or an instruction that never runs."""
    return instruction.opcode == "NOP" or instruction.predicate in ("@!PT", "@!UPT")


def _matching(pattern: str, body: tuple[sass.Instruction, ...]) -> list[sass.Instruction]:
    return [i for i in body if fnmatchcase(i.name, pattern)]


def _broken(links: list[sass.Instruction]) -> list[sass.Instruction]:
    """Return the loads whose address is not the value of the previous load, going around the loop."""
    return [
        here
        for before, here in zip([links[-1], *links[:-1]], links, strict=True)
        if not re.search(rf"\[{re.escape(before.operands[0])}(\.64)?\]$", here.operands[1])
    ]


def _does_nothing(function: sass.Function) -> Finding:
    """Check the code before the first EXIT; the rest is padding. Older targets still set up a stack pointer."""
    before = []
    for instruction in function.instructions:
        if instruction.opcode == "EXIT":
            break
        before.append(instruction)
    idle = ("NOP", "LDC", "LDCU", "MOV", "ULDC", "IMAD")
    if busy := [i for i in before if i.opcode not in idle or len(before) > 2]:
        return _failed("an empty kernel does something", busy)
    return Finding(True, "nothing but EXIT: held")


def _failed(says: str, lines: list[sass.Instruction]) -> Finding:
    shown = [f"/*{i.address:04x}*/ {i.text}" for i in lines[:_SHOWN]]
    if len(lines) > _SHOWN:
        shown.append(f"… {len(lines) - _SHOWN} more")
    return Finding(False, says, tuple(shown))
