"""Parses PTX, the assembly language that compilers write for NVIDIA GPUs, into functions and typed instructions.

`read` parses a complete text and rejects what it does not know. The functions of `scan` and `line_table` extract single
facts from any text, and are cheap."""

from assay.isa.ptx.declarations import Pointer, Prototype, Registers, Variable
from assay.isa.ptx.instruction import Instruction, Location
from assay.isa.ptx.line_table import Spot, line_table
from assay.isa.ptx.module import Function, Module
from assay.isa.ptx.operands import (
    MODULE,
    Address,
    Arguments,
    Immediate,
    Label,
    Operand,
    Pair,
    Predicate,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from assay.isa.ptx.parse_module import read, read_instruction
from assay.isa.ptx.scan import architecture, compared, entries, entry_parameters, instructions, shared_by_launches
from assay.isa.ptx.tokens import tokens

__all__ = [
    "MODULE",
    "Address",
    "Arguments",
    "Function",
    "Immediate",
    "Instruction",
    "Label",
    "Location",
    "Module",
    "Operand",
    "Pair",
    "Pointer",
    "Predicate",
    "Prototype",
    "Register",
    "Registers",
    "Sink",
    "Special",
    "Spot",
    "Symbol",
    "Variable",
    "Vector",
    "architecture",
    "compared",
    "entries",
    "entry_parameters",
    "instructions",
    "line_table",
    "read",
    "read_instruction",
    "shared_by_launches",
    "tokens",
]
