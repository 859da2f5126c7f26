"""The general registers, R0 to R254, that an instruction reads and writes, by its opcode, modifiers and operands.

An operand names only the first of its registers; the rules below give how many follow. A test compares them with
nvdisasm, which marks every register that an instruction touches (tests/isa/test_live.py)."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from assay.isa.sass import Instruction

Modifiers = tuple[str, ...]


class Touched(NamedTuple):
    """Bit masks with one bit per register."""

    reads: int
    writes: int


@dataclass(frozen=True)
class Shape:
    """How many registers each operand covers. Predicates are not counted among the operands."""

    widths: tuple[int, ...] = ()
    rest: int = 1
    """The width of all further operands."""
    results: int | None = 1
    """How many of the first operands are written; None means those before the address."""
    pointer: int = 1
    """The width of a register in brackets that has no width of its own."""


Rule = Callable[[Modifiers], Shape | None]


def touched(instruction: Instruction) -> Touched | None:
    """Return the registers that the instruction reads and writes; None if no rule covers it."""
    shape = _shape(instruction.opcode, instruction.modifiers)
    if shape is None:
        return None
    operands = [o for o in map(_operand, instruction.operands) if o is not None]
    if "256" in instruction.modifiers:
        shape = replace(shape, widths=_halves(instruction.operands))
    if instruction.opcode in _GROUP_PRODUCTS and len(operands) > 1 and operands[1].address:
        operands.insert(1, _Operand((), False))  # both factors are in shared memory, under one descriptor
    results = shape.results
    if results is None:
        results = next((at for at, operand in enumerate(operands) if operand.address), 0)
    reads = writes = 0
    for at, (registers, address) in enumerate(operands):
        for first, own in registers:
            width = own or (shape.pointer if address else shape.widths[at] if at < len(shape.widths) else shape.rest)
            mask = ((1 << width) - 1) << first
            if at < results:
                writes |= mask
            else:
                reads |= mask
    return Touched(reads, writes)


class _Operand(NamedTuple):
    registers: tuple[tuple[int, int], ...]
    """The number of each register it names, and how many registers it covers if the operand itself says so, else 0."""
    address: bool


@lru_cache(1 << 16)
def _operand(text: str) -> _Operand | None:
    """Return the registers in an operand's text; None for a predicate."""
    if _PREDICATE.fullmatch(text):
        return None
    named = _REGISTER.findall(_NAME.sub("", text))
    return _Operand(tuple((int(number), _OWN.get(own, 0)) for number, own in named), "[" in text)


_PREDICATE = re.compile(r"!?U?P[T\d]")
_REGISTER = re.compile(r"(?<![\w.])R(\d+)(?:\.reuse)?(\.64|\.U32|\.F32(?!x))?")
_OWN = {".64": 2, ".U32": 1, ".F32": 1}
"""How many registers an operand covers, by the suffix of its register."""
_NAME = re.compile(r"`\([^)]*\)")
"""The name of a label or a constant, which may look like a register."""
_LONG = re.compile(r"[USF]?64|128")
_BITS = re.compile(r"[A-Z]*?(8|16|32|64|128|256)(?:x(\d))?")
_MATRIX = re.compile(r"(16|8)(8)(\d+)|(\d+)x(\d+)x(\d+)")
"""`16816` and `16x8x16`: rows, columns, and the number of products summed."""
_GROUP_PRODUCTS = ("HGMMA", "IGMMA", "QGMMA", "BGMMA")
_ELEMENTS = {"TF32": 32, "S4": 4, "U4": 4}


def _single(results: int = 1) -> Rule:
    """One register per operand; no shape if a modifier names 64 or 128 bits."""
    return lambda modifiers: None if any(_LONG.fullmatch(m) for m in modifiers) else Shape(results=results)


def _wide(*names: str, results: int = 1) -> Rule:
    """Two registers per operand if one of these modifiers is present: `MOV.64`."""
    return lambda modifiers: Shape(rest=2 if set(names) & set(modifiers) else 1, results=results)


def _all(width: int, results: int = 1) -> Rule:
    return lambda modifiers: Shape(rest=width, results=results)


def _multiply(modifiers: Modifiers) -> Shape:
    """IMAD: the wide form adds 64 bits and keeps them all, the high form adds 64 bits and keeps the upper half."""
    wide, high = "WIDE" in modifiers, "HI" in modifiers
    return Shape((2 if wide else 1, 1, 1, 2 if wide or high else 1))


def _convert(modifiers: Modifiers) -> Shape:
    """F2F names both types, the result's first."""
    types = [m for m in modifiers if re.fullmatch(r"B?F(16|32|64)", m)]
    return Shape(tuple(2 if name == "F64" else 1 for name in types))


def _to_integer(modifiers: Modifiers) -> Shape:
    return Shape((2 if {"S64", "U64"} & set(modifiers) else 1, 2 if "F64" in modifiers else 1))


def _from_integer(modifiers: Modifiers) -> Shape:
    return Shape((2 if "F64" in modifiers else 1, 2 if {"S64", "U64"} & set(modifiers) else 1))


def _words(modifiers: Modifiers) -> int:
    """Return how many registers a memory access moves: 4 for `128`, 2 for `F32x2`, 1 for `U8`."""
    match = next((f for m in modifiers if (f := _BITS.fullmatch(m))), None)
    return max(1, int(match[1]) * int(match[2] or 1) // 32) if match else 1


def _access(results: int | None) -> Rule:
    """Loads, stores and atomics. Global addresses (`E`) have 64 bits."""
    return lambda m: Shape(rest=_words(m), results=results, pointer=2 if "E" in m else 1)


def _halves(operands: tuple[str, ...]) -> tuple[int, ...]:
    """Return how many registers each half of a 256-bit access has. A mask may leave out some of the eight; the others
    are consecutive. Loads name the high half first."""
    mask = next((int(o, 16) for o in operands if o.startswith("0x")), 0xFF)
    low, high = (mask & 0xF).bit_count(), (mask >> 4).bit_count()
    return (0, low, high) if operands and "[" in operands[0] else (high, low)


def _tiles(results: int) -> Rule:
    """LDSM and STSM: one, two or four matrices of 8×8 halves; 16×16 bytes are two of them."""

    def shape(modifiers: Modifiers) -> Shape:
        count = next((int(m) for m in modifiers if m in ("2", "4")), 1)
        return Shape(rest=count * (2 if "MT1616" in modifiers else 1), results=results)

    return shape


def _move_matrix(modifiers: Modifiers) -> Shape | None:
    width = next((width for name, width in (("MT88", 1), ("M832", 2)) if name in modifiers), None)
    return Shape((width,)) if width else None


def _tensor_memory(results: int) -> Rule:
    """LDTM and STTM: `16dp256bit.x4` moves, four times, 256 bits of each of 16 lanes."""

    def shape(modifiers: Modifiers) -> Shape:
        times = next((int(m[1:]) for m in modifiers if re.fullmatch(r"x\d+", m)), 1)
        each = next((bits for bits in (128, 256) if f"16dp{bits}bit" in modifiers), 64) // 64
        return Shape(rest=times * each, results=results)

    return shape


def _product(threads: int, bits: int) -> Rule:
    """D = A·B + C, distributed over the threads of one warp or of four. A sparse A has half its elements, plus a word
    that selects them. `bits` is the size of an element of A and B, unless a modifier gives it."""

    def shape(modifiers: Modifiers) -> Shape | None:
        sizes = next((f for m in modifiers if (f := _MATRIX.fullmatch(m))), None)
        if sizes is None:
            return None
        rows, columns, depth = (int(size) for size in sizes.groups() if size)
        each = next((_ELEMENTS[m] for m in modifiers if m in _ELEMENTS), bits)
        total = 64 if bits == 64 else 16 if "F16" in modifiers else 32
        d = rows * columns * total // (32 * threads)
        a = rows * depth * each // (32 * threads) // (2 if "SP" in modifiers else 1)
        return Shape((d, a, columns * depth * each // (32 * threads), d))

    return shape


_RULES: dict[str, Rule] = {
    name: rule
    for names, rule in (
        # The first operand is written, whether it is a general register, a uniform one or a barrier.
        (
            "B2R BMOV BMSK BREV CREDUX F2FP F2IP FADD FFMA FHADD FHFMA FLO FMNMX FMNMX3 FMUL FSEL FSET FSWZADD HADD2 "
            "HFMA2 HMNMX2 HMUL2 HSET2 I2FP I2I I2IP IABS IADD3 IDP LEA LOP3 P2R POPC PRMT QADD4 QFMA4 QMUL4 R2P R2UR "
            "REDUX RPCMOV S2R SGXT SHFL VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3 VOTE",
            _single(),
        ),
        ("BAR FCHK FSETP HSETP2 NANOSLEEP WARPSYNC", _single(results=0)),
        ("MUFU SHF", _all(1)),  # one half of 64 bits; a second instruction computes the other
        ("IADD MOV SEL", _wide("64")),
        ("IMNMX", _wide("S64", "U64")),
        ("ISETP", _wide("S64", "U64", results=0)),
        ("FRND", _wide("F64")),
        ("CLMAD DADD DFMA DMUL FADD2 FFMA2 FMUL2 GETLMEMBASE LEPC", _all(2)),
        ("BRX CALL DSETP RET", _all(2, results=0)),
        ("CS2R", lambda modifiers: Shape((1 if "32" in modifiers else 2,))),
        ("F2F", _convert),
        ("F2I", _to_integer),
        ("I2F", _from_integer),
        ("IMAD", _multiply),
        ("MATCH", lambda modifiers: Shape((1, 2 if "U64" in modifiers else 1))),
        ("MOVM", _move_matrix),
        ("ATOM ATOMG ATOMS LD LDC LDG LDGMC LDL LDS QSPC", _access(results=None)),
        ("ARRIVES CCTL CCTLL RED REDAS REDG ST STAS STG STL STS", _access(results=0)),
        ("LDGSTS", _all(1, results=0)),  # of its two addresses, the global one is marked `.64`
        ("SYNCS", lambda modifiers: Shape((2,), results=None)),  # an arrival returns the phase, 64 bits
        ("LDSM", _tiles(results=1)),
        ("STSM", _tiles(results=0)),
        ("LDTM", _tensor_memory(results=1)),
        ("STTM", _tensor_memory(results=0)),
        ("BMMA", _product(32, 1)),
        ("OMMA", _product(32, 4)),
        ("IMMA QMMA", _product(32, 8)),
        ("HMMA", _product(32, 16)),
        ("DMMA", _product(32, 64)),
        ("BGMMA", _product(128, 1)),
        ("IGMMA QGMMA", _product(128, 8)),
        ("HGMMA", _product(128, 16)),
        # These touch no register, or only predicates and uniform registers.
        (
            "ACQBULK ACQSHMINIT BPT BRA BREAK BSSY BSYNC CGAERRBAR DEPBAR ELECT ENDCOLLECTIVE ERRBAR EXIT FENCE LDCU "
            "LDGDEPBAR MEMBAR NOP PLOP3 PMTRIG PREEXIT S2UR UBLKCP UBLKPF UBLKRED UBMSK UBREV UCGABAR_ARV UCGABAR_WAIT "
            "UCLEA UF2FP UFLO UGETNEXTWORKID UIADD3 UIMAD UISETP ULDC ULEA ULEPC ULOP3 UMOV UP2UR UPLOP3 UPOPC UPRMT "
            "UR2UP USEL USETMAXREG USETSHMSZ USGXT USHF UTCATOMSWS UTCBAR UTCCP UTCHMMA UTCQMMA UTCSHIFT UTMACCTL "
            "UTMACMDFLUSH UTMALDG UTMAPF UTMAREDG UTMASTG UVIRTCOUNT VOTEU WARPGROUP YIELD",
            _all(1, results=0),
        ),
    )
    for name in names.split()
}


@lru_cache(4096)
def _shape(opcode: str, modifiers: Modifiers) -> Shape | None:
    rule = _RULES.get(opcode)
    if rule is None or any(not m or m.startswith("INVALID") for m in modifiers):  # nvdisasm's `???0` and `INVALID3`
        return None
    return rule(modifiers)
