"""Extracts single facts from a PTX text without parsing all of it. These functions accept any text and skip what they
do not understand."""

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

from assay.errors import SourceError
from assay.isa.ptx import parse_declarations as declarations
from assay.isa.ptx.cursor import Cursor
from assay.isa.ptx.declarations import Variable
from assay.isa.ptx.instruction import Instruction
from assay.isa.ptx.operands import Immediate
from assay.isa.ptx.parse_module import read_instruction
from assay.isa.ptx.tokens import NAME, tokens, without_comments

_LINE_COMMENT = re.compile("//.*")
_ARCHITECTURE = re.compile(r"(?:sm|compute)_\d+[af]?", re.ASCII)


def architecture(text: str) -> str:
    """Return the architecture named by .target: `sm_90a`; empty if there is none."""
    return next(filter(_ARCHITECTURE.fullmatch, _after(".target", text)), "")


def entries(text: str) -> list[str]:
    """Return the names of the kernels, in order."""
    return list(filter(NAME.fullmatch, _after(".entry", text)))


def entry_parameters(text: str, entry: str) -> tuple[Variable, ...] | None:
    """Return the parameters of one kernel; None if there is no such kernel or they cannot be parsed."""
    stream, before = tokens(text), ""
    for token in stream:
        if (before, token) == (".entry", entry):
            head = list(takewhile(lambda t: t not in ("{", ";"), stream))
            try:
                return declarations.parameters(Cursor(head, 0))
            except SourceError:
                return None
        before = token
    return None


def instructions(text: str, opcode: str) -> Iterator[Instruction]:
    """Yield every instruction with that opcode, without its predicate; names are resolved as in `read_instruction`."""
    stream = tokens(text)
    for token in stream:
        if token.partition(".")[0] == opcode:
            statement = " ".join([token, *takewhile(lambda t: t != ";", stream)])
            try:
                yield read_instruction(statement)
            except SourceError:
                continue


def shared_by_launches(text: str, entry: str) -> list[str]:
    """Return the variables in global memory that start without a value and that an entry, or a function that is not
    inlined, uses: what one launch leaves there, another one of the same module finds."""
    declared: list[str] = []
    used: set[str] = set()
    stream, before, inside = tokens(text), "", entry
    for token in stream:
        if before == ".entry":
            inside = token
        elif token == ".func":
            inside = entry
        if token == ".global" and before != ".ptr":  # not a parameter that points to global memory
            statement = list(takewhile(lambda t: t != ";", stream))
            names = [t for t in takewhile(lambda t: t not in ("[", "="), statement) if NAME.fullmatch(t)]
            declared += names[-1:] if "=" not in statement else []
        elif inside == entry:
            used.add(token)
        before = token
    return [name for name in declared if name in used]


def compared(text: str) -> list[int]:
    """Return the distinct integers that `setp` compares a register with."""
    statements = _LINE_COMMENT.sub("", without_comments(text)[0]).split(";")
    text = ";".join([*(s for s in statements if "setp" in s), ""])  # splitting a megabyte of PTX takes a second
    second = (operand for each in instructions(text, "setp") for operand in each.operands[2:3])
    return list(dict.fromkeys(o.value for o in second if isinstance(o, Immediate) and isinstance(o.value, int)))


def _after(directive: str, text: str) -> Iterator[str]:
    """Yield the token after each occurrence of the directive."""
    return (following for token, following in pairwise(tokens(text)) if token == directive)
