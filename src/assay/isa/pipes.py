"""Classifies instructions by opcode: the unit of a multiprocessor that they occupy, and the bits that they move."""

import re

PIPES = {
    "fma": "fp32 and half multiply-add, integer multiply-add",
    "alu": "integer, logic, comparison, selection, moves",
    "fp64": "double precision",
    "xu": "special functions (MUFU) and conversions",
    "tensor": "matrix products",
    "lsu": "loads, stores, atomics, shuffles",
    "tex": "textures and surfaces",
    "tma": "bulk copies between memories",
    "uniform": "what a whole warp computes once",
    "adu": "constants, barriers, fences",
    "cbu": "branches and convergence",
    "none": "nothing: special registers, NOP",
}

_OPCODES = {
    "fma": "FFMA FFMA2 FMUL FMUL2 FADD FADD2 FFMA32I FMUL32I FADD32I IMAD IMAD32I IMUL IDP HFMA2 HADD2 HMUL2 "
    "FSWZADD XMAD",
    "alu": "IADD3 IADD IADD32I IADDX VIADD VIADDMNMX VIMNMX VIMNMX3 LOP3 LOP LOP32I PLOP3 SHF SHL SHR LEA ISETP FSETP "
    "HSETP2 ISET FSET HSET2 SEL FSEL PSETP IMNMX FMNMX FMNMX3 HMNMX2 VHMNMX FCHK PRMT MOV MOV32I MOVM IABS SGXT BMSK "
    "P2R R2P VABSDIFF VABSDIFF4 CSET CSETP F2FP I2FP I2IP R2UR VOTE CREDUX ICMP FCMP BFE BFI",
    "fp64": "DFMA DADD DMUL DSETP DMNMX",
    "xu": "MUFU I2F F2I F2F I2I FRND POPC FLO BREV",
    "tensor": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA "
    "UTCBAR UTCCP UTCSHIFT UTCATOMSWS WARPGROUP WARPGROUPSET LDT LDTM STT STTM",
    "lsu": "LD ST LDG STG LDS STS LDL STL ATOM ATOMG ATOMS RED REDG REDAS REDS LDSM STSM LDGSTS LDGDEPBAR ARRIVES SHFL "
    "MATCH QSPC CCTL CCTLL CCTLT LDGMC STAS SYNCS REDUX",
    "tex": "TEX TEXS TLD TLD4 TLD4S TLDS TMML TXD TXQ TXA SULD SUST SURED SUATOM SUQUERY FOOTPRINT",
    "tma": "UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKRED UBLKPF",
    "adu": "LDC LDCU BAR B2R DEPBAR MEMBAR FENCE ERRBAR AL2P ALD AST OUT PIXLD IPA ISBERD ISBEWR CGAERRBAR UCGABAR_ARV "
    "UCGABAR_WAIT ELECT ACQBULK ACQSHMINIT ENDCOLLECTIVE",
    "cbu": "BRA BRX BRXU JMP JMX JMXU BSSY BSYNC BREAK CALL RET EXIT KILL WARPSYNC YIELD NANOSLEEP BMOV RPCMOV "
    "BPT RTT COLLECTIVE PREEXIT JMPR LEPC PMTRIG",
    "none": "NOP CS2R S2R S2UR GETLMEMBASE SETLMEMBASE USETMAXREG SETCTAID SETSHMSZ UVIRTCOUNT CS2UR",
}
_PIPE = {opcode: pipe for pipe, names in _OPCODES.items() for opcode in names.split()}

_SPACES = {
    "global": "LDG STG ATOMG REDG RED LDGSTS LDGMC SULD SUST",
    "shared": "LDS STS ATOMS LDSM STSM REDS STAS REDAS",
    "local": "LDL STL",
    "constant": "LDC ULDC LDCU",
    "generic": "LD ST ATOM",
}
_SPACE = {opcode: space for space, names in _SPACES.items() for opcode in names.split()}
_BITS = re.compile(r"[USFB]?F?(8|16|32|64|128|256)(?:x([24]))?$")
_MATRIX = re.compile(r"M88|MT88|M816|M832|M864")


def pipe(opcode: str, modifiers: tuple[str, ...] = ()) -> str:
    """Return the unit that an opcode occupies: "fma" for FFMA. An unlisted opcode that begins with U is `uniform`, any
    other `unknown`."""
    if opcode in _PIPE:
        return _PIPE[opcode]
    return "uniform" if opcode.startswith("U") or opcode in ("VOTEU", "R2UR", "REDUX") else "unknown"


def space(opcode: str) -> str:
    """Return the memory that an access uses; empty for other instructions."""
    return _SPACE.get(opcode, "")


def width(opcode: str, modifiers: tuple[str, ...]) -> int | None:
    """Return the bits that each thread moves; None if the instruction does not access memory."""
    if opcode not in _SPACE:
        return None
    if opcode in ("LDSM", "STSM"):
        parts = next((int(m) for m in modifiers if m in ("2", "4")), 1)
        return 32 * parts if any(_MATRIX.match(m) for m in modifiers) else None
    for modifier in modifiers:
        if match := _BITS.match(modifier):
            return int(match[1]) * int(match[2] or 1)
    return 32
