"""Rewrites PTX so that a store happens as late as the memory model allows: after the atomic operation or volatile store
that follows it without a fence, as if it were still on its way to memory.

Each thread still computes the same. Another thread that takes the atomic operation as a signal that the store has
arrived reads the old value: a `__threadfence()` is missing. Only stores in the same straight-line code are moved, and
only across arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STATEMENT = re.compile(
    r"[ \t]*(?:@(?P<not>!?)(?P<predicate>%[\w$]+)[ \t]+)?(?P<opcode>[a-z][\w.:]*)[ \t]+(?P<operands>[^;]*);[ \t]*(?://.*)?"
)
_ADDRESS = re.compile(r"\[[ \t]*(?P<base>[%\w$]+)[ \t]*(?:\+[ \t]*(?P<offset>-?\d+))?[ \t]*\]")
_REGISTER = re.compile(r"%[\w$]+")
_NOTHING = re.compile(r"[ \t]*(?://.*|\.(?:loc|pragma)\b.*)?")
"""A line without an instruction."""
_ARITHMETIC = re.compile(
    "abs|addc?|and|bfe|bfi|bfind|brev|clz|cnot|copysign|cos|cvta?|div|dp2a|dp4a|ex2|fma|fns|isspacep|lg2|lop3|madc?|mad24|"
    "max|min|mov|mul|mul24|neg|not|or|popc|prmt|rcp|rem|rsqrt|sad|selp|setp?|shf|shl|shr|sin|slct|sqrt|subc?|szext|tanh|"
    "testp|xor"
)
_ORDERED = frozenset(("volatile", "relaxed", "release", "acquire", "acq_rel", "mmio"))
_ELSEWHERE = frozenset(("shared", "local", "param", "const", "async", "bulk"))
_NEAR = 64
"""Bytes. Two accesses closer than this may overlap, and keep their order."""


@dataclass(frozen=True)
class _Statement:
    line: str
    opcode: list[str]
    operands: str
    predicate: str
    negated: bool

    @property
    def address(self) -> tuple[str, int] | None:
        found = _ADDRESS.search(self.operands)
        return (found["base"], int(found["offset"] or 0)) if found else None

    @property
    def registers(self) -> set[str]:
        return {*_REGISTER.findall(self.operands), *filter(None, [self.predicate])}

    @property
    def written(self) -> set[str]:
        """The registers that it writes: those before the first comma outside braces. A store and `red` write none."""
        if self.opcode[0] in ("st", "red"):
            return set()
        first = re.match(r"\s*(\{[^}]*\}|[^,]*)", self.operands)
        return set(_REGISTER.findall(first[1])) if first else set()

    @property
    def is_store(self) -> bool:
        """Whether it is a store to global memory without any ordering."""
        kind, *how = self.opcode
        return kind == "st" and _ORDERED.isdisjoint(how) and _ELSEWHERE.isdisjoint(how) and self.address is not None

    @property
    def is_sign(self) -> bool:
        """Whether other threads may take it as a signal, although it does not make earlier stores visible."""
        kind, *how = self.opcode
        if not _ELSEWHERE.isdisjoint(how) or self.address is None:
            return False
        if kind in ("atom", "red"):
            return _ORDERED.isdisjoint(how) or "relaxed" in how
        return kind == "st" and ("volatile" in how or "relaxed" in how)


def postponed(text: str) -> str:
    """Return the PTX with its stores postponed."""
    lines: list[str] = []
    stores: list[tuple[int, _Statement]] = []
    for line in text.split("\n"):
        if _NOTHING.fullmatch(line):
            lines.append(line)
            continue
        statement = _read(line)
        if statement is None or any(statement.written & store.registers for _, store in stores):
            stores = []
        elif statement.is_sign:
            if stores:
                for at, _ in stores:
                    lines[at] = ""
                line = _around(statement, [store for _, store in stores])
            stores = []
        elif statement.is_store:
            stores.append((len(lines), statement))
        elif not _ARITHMETIC.fullmatch(statement.opcode[0]):
            stores = []
        lines.append(line)
    return "\n".join(lines)


def _read(line: str) -> _Statement | None:
    """Parse a line; None unless it is one plain instruction (not a label, a brace, or several instructions)."""
    found = _STATEMENT.fullmatch(line)
    if found is None:
        return None
    opcode = found["opcode"].replace("::", ".").split(".")
    return _Statement(line.strip(), opcode, found["operands"], found["predicate"] or "", found["not"] == "!")


def _around(sign: _Statement, stores: list[_Statement]) -> str:
    """Return the statement with the stores after it, except those to nearly the same address, which stay before it."""
    assert sign.address is not None
    lines = ["{", ".reg .b64 %assay_at;", ".reg .b64 %assay_far;"]
    lines += [f".reg .pred %assay_before{i};\n.reg .pred %assay_after{i};" for i in range(len(stores))]
    lines += _address("%assay_at", *sign.address)
    for i, store in enumerate(stores):
        assert store.address is not None
        lines += _address("%assay_far", *store.address)
        lines += [
            "sub.s64 %assay_far, %assay_far, %assay_at;",
            f"add.s64 %assay_far, %assay_far, {_NEAR};",
            f"setp.lt.u64 %assay_before{i}, %assay_far, {2 * _NEAR};",
            f"not.pred %assay_after{i}, %assay_before{i};",
        ]
        if store.predicate:
            lines += _only_if(store, f"%assay_before{i}", f"%assay_after{i}")
        lines.append(f"@%assay_before{i} {_bare(store)}")
    lines.append(sign.line)
    lines += [f"@%assay_after{i} {_bare(store)}" for i, store in enumerate(stores)]
    return "\n".join([*lines, "}"])


def _address(register: str, base: str, offset: int) -> list[str]:
    return [f"mov.u64 {register}, {base};", *([f"add.s64 {register}, {register}, {offset};"] if offset else [])]


def _only_if(store: _Statement, *predicates: str) -> list[str]:
    if not store.negated:
        return [f"and.pred {p}, {p}, {store.predicate};" for p in predicates]
    # p and not q, which PTX lacks, as not (not p or q)
    return [
        line
        for p in predicates
        for line in (f"not.pred {p}, {p};", f"or.pred {p}, {p}, {store.predicate};", f"not.pred {p}, {p};")
    ]


def _bare(store: _Statement) -> str:
    """Return the instruction without its predicate."""
    return store.line.partition(store.predicate)[2].strip() if store.predicate else store.line
