"""Resolves names by the declarations of the blocks that are open at a position."""

from dataclasses import replace

from assay.isa.ptx.declarations import Registers, prefix
from assay.isa.ptx.numbers import canonical, literal
from assay.isa.ptx.operands import MODULE, Immediate, Operand, Register, Sink, Special, Symbol
from assay.isa.ptx.tokens import NAME

_VECTOR_SPECIALS = (
    "tid",
    "ntid",
    "ctaid",
    "nctaid",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
)
_SPECIALS = frozenset(
    [
        "laneid",
        "warpid",
        "nwarpid",
        "smid",
        "nsmid",
        "gridid",
        "is_explicit_cluster",
        "cluster_ctarank",
        "cluster_nctarank",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
        "clock",
        "clock_hi",
        "clock64",
        "globaltimer",
        "globaltimer_lo",
        "globaltimer_hi",
        "reserved_smem_offset_begin",
        "reserved_smem_offset_end",
        "reserved_smem_offset_cap",
        "total_smem_size",
        "aggr_smem_size",
        "dynamic_smem_size",
        "current_graph_exec",
        *_VECTOR_SPECIALS,
        *(f"{name}.{part}" for name in _VECTOR_SPECIALS for part in "xyzw"),
        *(f"pm{i}{wide}" for i in range(8) for wide in ("", "_64")),
        *(f"envreg{i}" for i in range(32)),
        *(f"reserved_smem_offset_{i}" for i in range(2)),
    ]
)


class Scope(dict[str, Operand]):
    """Maps a single token to its operand. A name is resolved in the innermost open block that declares it. The
    dictionary caches lookups; a token that is not an operand raises LookupError."""

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[str, list[Register | Symbol]] = {}
        self._counted: dict[str, list[tuple[int, int]]] = {}
        self._open: list[tuple[int, list[str], list[str]]] = []
        self.open(0)

    def open(self, block: int) -> None:
        self._open.append((block, [], []))
        self.block = block

    def close(self) -> None:
        _, names, prefixes = self._open.pop()
        self.block = self._open[-1][0]
        for name in names:
            self._names[name].pop()
            self.pop(name, None)
        for name in prefixes:
            self._counted[name].pop()
        if prefixes:
            self.clear()

    def declare(self, name: Register | Symbol) -> None:
        self._names.setdefault(name.name, []).append(name)
        self._open[-1][1].append(name.name)
        self.pop(name.name, None)

    def declare_registers(self, registers: Registers) -> None:
        if registers.count is None:
            self.declare(Register(registers.name, registers.block))
        else:
            self._counted.setdefault(registers.name, []).append((registers.block, registers.count))
            self._open[-1][2].append(registers.name)
            self.clear()

    def __missing__(self, token: str) -> Operand:
        operand = self._read(token)
        if "." not in token:  # a cached `v.x` would have to be dropped together with `v`
            self[token] = operand
        return operand

    def _read(self, token: str) -> Operand:
        if token == "_":
            return Sink()
        if token == "WARP_SZ":
            return Immediate(token, 32)
        value = literal(token)
        if value is not None:
            return Immediate(canonical(token), value)
        if declared := self._declared(token):
            return declared
        name, _, part = token.partition(".")
        if part and isinstance(declared := self._declared(name), Register) and "." not in part:
            return replace(declared, part=part)
        if token.startswith("%") and token[1:] in _SPECIALS:
            return Special(token)
        if NAME.fullmatch(token) and not token.startswith("%"):
            return Symbol(token, MODULE)
        raise LookupError(token)

    def _declared(self, name: str) -> Register | Symbol | None:
        single = self._names.get(name)
        innermost = single[-1] if single else None
        stem = prefix(name)
        digits = name[len(stem) :]
        if stem in self._counted and 0 < len(digits) < 10 and (digits == "0" or digits[0] != "0"):
            for block, count in reversed(self._counted[stem]):
                if int(digits) < count:
                    return innermost if innermost and innermost.block > block else Register(name, block)
        return innermost


class UndeclaredScope(Scope):
    """A scope for code without its declarations: any unknown name that begins with % is a register of block 0."""

    def _read(self, token: str) -> Operand:
        try:
            return super()._read(token)
        except LookupError:
            name, _, part = token.partition(".")
            if not NAME.fullmatch(name):
                raise
            return Register(name, 0, part)
