"""Reads a cubin: an ELF file with one `.text.<kernel>` section per kernel and its resources in `.nv.info.<kernel>`."""

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import MalformedError
from assay.target import Target

_CUDA = 190
"""e_machine of GPU code; 62 is x86-64, 183 is AArch64."""
_NO_BYTES = 8
"""SHT_NOBITS: a section that has a size but no bytes in the file."""
_MANY = 0xFFFF
"""Marks a count that does not fit in 16 bits; the first section header contains it."""
_REGCOUNT, _MIN_STACK, _FRAME = 0x2F, 0x12, 0x11
"""EIATTR codes in `.nv.info`; their entries contain (symbol index, value)."""
_RESERVED = 1024
"""Bytes of shared memory that the system reserves in each block. Since sm_90 a kernel's section includes them."""


@dataclass(frozen=True)
class Section:
    name: str
    data: bytes
    size: int
    """Size in bytes, also for sections without bytes in the file (.nv.shared)."""


@dataclass(frozen=True)
class Function:
    symbol: str
    text: bytes
    registers: int | None
    shared: int
    """Bytes of static shared memory that the kernel declares, as ptxas counts them."""
    stack: int | None

    @property
    def text_hash(self) -> str:
        return hashlib.sha256(self.text).hexdigest()[:16]


def sections(cubin: bytes) -> list[Section]:
    """Return every section of a cubin, in file order."""
    all_sections = elf_sections(cubin)
    machine = _at("<H", cubin, 18, "the ELF header")[0]
    if machine != _CUDA:
        known = {62: "x86-64", 183: "AArch64"}.get(machine, f"machine {machine}")
        raise _malformed(f"an ELF file for {known}, not a cubin", "give a cubin; out of a program: cuobjdump -xelf all")
    return all_sections


def elf_sections(data: bytes) -> list[Section]:
    """Return every section of any 64-bit ELF file: a cubin, a host object, a program."""
    if data[:4] != b"\x7fELF":
        raise _malformed("not an ELF file, so no cubin" if data else "the file is empty")
    if data[4:6] != b"\x02\x01":
        raise _malformed("not a 64-bit little-endian ELF file")
    programs, offset = _at("<QQ", data, 0x20, "the ELF header")
    entry, count, size, number, names_index = _at("<HHHHH", data, 0x36, "the ELF header")
    if count and programs + entry * count > len(data):
        raise _malformed(f"the program headers should reach to byte {programs + entry * count} of {len(data)}")
    if offset == 0:
        return []
    if size != 64:
        raise _malformed(f"a section header of {size} bytes instead of 64")
    first = _at("<IIQQQQIIQQ", data, offset, "the section headers")
    number = number or first[5]
    names_index = first[6] if names_index == _MANY else names_index
    if offset + number * size > len(data):
        raise _malformed(f"the section headers should reach to byte {offset + number * size} of {len(data)}")
    if names_index >= number:
        raise _malformed(f"the section of names is number {names_index} of {number}")
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(number)]
    names = _bytes(data, headers[names_index], "the table of section names")
    sections = []
    for i, header in enumerate(headers):
        name = _name(names, header[0], f"section {i}")
        sections.append(Section(name, _bytes(data, header, name or f"section {i}"), header[5]))
    return sections


def target(cubin: bytes) -> Target:
    """Return the target of a cubin, with its `a` or `f`, from the ELF header and the note that ptxas writes."""
    by_name = {s.name: s for s in sections(cubin)}
    (flags,) = _at("<I", cubin, 48, "the ELF header")
    if cubin[8] >= 8:  # since CUDA 13 the number is in the second byte and the `a` in .nv.compat
        number, accelerated = flags >> 8 & 0xFF, _byte_attribute(by_name.get(".nv.compat"), 9) == 1
    else:
        number, accelerated = flags & 0xFF, bool(flags & 0x800)
    if number < 20:
        raise _malformed(f"built for sm_{number}, which does not exist")
    note = by_name.get(".note.nv.tkinfo")
    if note and re.search(rb"-arch[= ]sm_%df\b" % number, note.data):  # the only trace of sm_100f
        return Target(f"sm_{number}f")
    return Target(f"sm_{number}{'a' if accelerated else ''}")


def functions(cubin: bytes) -> list[Function]:
    """Return every kernel in the cubin, in file order."""
    by_name = {s.name: s for s in sections(cubin)}
    symbols = _symbol_names(by_name)
    registers = _attributes(by_name.get(".nv.info"), _REGCOUNT)
    stacks = _attributes(by_name.get(".nv.info"), _MIN_STACK)
    reserved = _RESERVED if target(cubin).capability >= (9, 0) else 0
    kernels = []
    for name, section in by_name.items():
        if name.startswith(".text."):
            symbol = name.removeprefix(".text.")
            index = symbols.get(symbol, -1)
            shared = by_name.get(f".nv.shared.{symbol}")
            own = max(0, shared.size - reserved) if shared else 0
            kernels.append(Function(symbol, section.data, registers.get(index), own, stacks.get(index)))
    return kernels


def _symbol_names(by_name: dict[str, Section]) -> dict[str, int]:
    for needed in (".symtab", ".strtab"):
        if needed not in by_name:
            raise _malformed(f"the cubin has no {needed}, so its kernels have no names")
    table, names = by_name[".symtab"].data, by_name[".strtab"].data
    if len(table) % 24:
        raise _malformed(f"the symbol table has {len(table)} bytes, not a multiple of 24")
    return {
        _name(names, struct.unpack_from("<I", table, at)[0], "a symbol"): at // 24 for at in range(0, len(table), 24)
    }


def _attributes(info: Section | None, wanted: int) -> dict[int, int]:
    """Return one attribute's value by symbol index. Entries are (format, code, size or value, payload)."""
    values: dict[int, int] = {}
    data, at = (info.data if info else b""), 0
    while at + 4 <= len(data):
        form, code, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            if at + size > len(data):
                raise _malformed(f".nv.info: an entry should reach to byte {at + size} of {len(data)}")
            if code == wanted and size >= 8:
                symbol, value = struct.unpack_from("<II", data, at)
                values[symbol] = value
            at += size
    return values


def _byte_attribute(info: Section | None, wanted: int) -> int | None:
    """Return the value of a one-byte attribute of .nv.compat, which is stored next to the attribute's code."""
    data, at = (info.data if info else b""), 0
    while at + 4 <= len(data):
        form, code, size = struct.unpack_from("<BBH", data, at)
        if code == wanted and form in (2, 3):
            return int(size & 0xFF)
        at += 4 + (size if form == 4 else 0)
    return None


def _at(form: str, data: bytes, at: int, what: str) -> tuple[Any, ...]:
    if at + struct.calcsize(form) > len(data):
        raise _malformed(f"the file ends at byte {len(data)}, within {what}")
    return struct.unpack_from(form, data, at)


def _bytes(data: bytes, header: Sequence[int], what: str) -> bytes:
    kind, at, size = header[1], header[4], header[5]
    if kind == _NO_BYTES or size == 0:
        return b""
    if at + size > len(data):
        raise _malformed(f"{what} should reach to byte {at + size} of {len(data)}")
    return data[at : at + size]


def _name(table: bytes, start: int, what: str) -> str:
    end = table.find(b"\0", start)
    if start >= len(table) or end < 0:
        raise _malformed(f"the name of {what} is outside its table")
    try:
        return table[start:end].decode()
    except UnicodeDecodeError:
        raise _malformed(f"the name of {what} is no text") from None


def _malformed(
    what: str, fix: str = "build or copy the file again: it is cut short, damaged, or no cubin"
) -> MalformedError:
    return MalformedError(what, fix=fix)
