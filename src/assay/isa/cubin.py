"""Reads a cubin: an ELF file with one `.text.<kernel>` section per kernel and its resources in `.nv.info.<kernel>`."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

_REGCOUNT, _MIN_STACK, _FRAME = 0x2F, 0x12, 0x11
"""EIATTR codes in `.nv.info`, each holding (symbol index, value)."""


@dataclass(frozen=True)
class Section:
    name: str
    data: bytes
    size: int
    """Also for sections without bytes (.nv.shared)."""


@dataclass(frozen=True)
class Function:
    symbol: str
    text: bytes
    registers: int | None
    shared: int
    stack: int | None

    @property
    def text_hash(self) -> str:
        return hashlib.sha256(self.text).hexdigest()[:16]


def sections(cubin: bytes) -> list[Section]:
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF file")
    (offset,) = struct.unpack_from("<Q", cubin, 0x28)
    entry, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, offset + i * entry) for i in range(count)]
    names_at = headers[names_index][4]
    found = []
    for name, kind, _, _, at, size, *_ in headers:
        end = cubin.index(b"\0", names_at + name)
        data = b"" if kind == 8 else cubin[at : at + size]  # SHT_NOBITS has a size but no bytes
        found.append(Section(cubin[names_at + name : end].decode(), data, size))
    return found


def functions(cubin: bytes) -> list[Function]:
    """Every kernel in the cubin, in file order."""
    by_name = {s.name: s for s in sections(cubin)}
    symbols = _symbol_names(by_name)
    registers = _attributes(by_name.get(".nv.info"), _REGCOUNT)
    stacks = _attributes(by_name.get(".nv.info"), _MIN_STACK)
    found = []
    for name, section in by_name.items():
        if name.startswith(".text."):
            symbol = name.removeprefix(".text.")
            index = symbols.get(symbol, -1)
            shared = by_name.get(f".nv.shared.{symbol}")
            found.append(
                Function(symbol, section.data, registers.get(index), shared.size if shared else 0, stacks.get(index))
            )
    return found


def _symbol_names(by_name: dict[str, Section]) -> dict[str, int]:
    table, names = by_name[".symtab"].data, by_name[".strtab"].data
    found = {}
    for i in range(len(table) // 24):
        (start,) = struct.unpack_from("<I", table, i * 24)
        found[names[start : names.index(b"\0", start)].decode()] = i
    return found


def _attributes(info: Section | None, wanted: int) -> dict[int, int]:
    """Symbol index → value, for one attribute. Entries are (format, code, size or value, payload)."""
    found: dict[int, int] = {}
    data, at = (info.data if info else b""), 0
    while at + 4 <= len(data):
        form, code, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            if code == wanted and size >= 8:
                symbol, value = struct.unpack_from("<II", data, at)
                found[symbol] = value
            at += size
    return found
