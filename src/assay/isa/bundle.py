"""Merges kernels of several cubins into one, so that nvdisasm starts only once for all of them: starting takes half a
second, a kernel one millisecond."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from assay.isa import cubin as cubins
from assay.isa.cubin import Function

_HEADER, _SECTION, _SYMBOL = 64, "<IIQQQQIIQQ", "<IBBHQQ"
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_INFO = 0x70000000
"""SHT_CUDA_INFO, the type of `.nv.info`."""
_ALLOCATED, _EXECUTABLE = 2, 4
_GLOBAL_FUNCTION, _ENTRY = 0x12, 0x10
"""The symbol's binding and type (a global function), and the flag that marks a kernel."""
_COPIED = (".nv.compat", ".note.nv.tkinfo")
"""Sections that state what the code is built for."""
_REGCOUNT = b"\x04\x2f\x08\x00"
"""The head of an `.nv.info` entry with eight bytes of payload: the symbol's number, and the registers of a thread."""


def bundle(cubin: bytes, functions: Sequence[Function]) -> bytes:
    """Return a cubin with these functions, named `0`, `1`, …, and nothing else. All must be built for the same target;
    `cubin` is one of the cubins that they come from. The result can be read and disassembled, but not loaded."""
    kept = [s for s in cubins.sections(cubin) if s.name in _COPIED]
    texts = [f".text.{i}" for i in range(len(functions))]
    names = ["", ".shstrtab", ".strtab", ".symtab", ".nv.info", *(s.name for s in kept), *texts]
    strings, starts = _strings(["", *map(str, range(len(functions)))])
    first = len(names) - len(texts)
    symbols = [bytes(24)]
    symbols += [
        struct.pack(_SYMBOL, start, _GLOBAL_FUNCTION, _ENTRY, first + i, 0, len(function.text))
        for i, (function, start) in enumerate(zip(functions, starts[1:], strict=True))
    ]
    info = [_REGCOUNT + struct.pack("<II", i, function.registers or 0) for i, function in enumerate(functions, 1)]
    section_strings, section_starts = _strings(names)
    contents = [b"", section_strings, strings, b"".join(symbols), b"".join(info), *(s.data for s in kept)]
    contents += [function.text for function in functions]
    body, headers = bytearray(bytes(_HEADER)), []
    for index, (name, data) in enumerate(zip(names, contents, strict=True)):
        body += bytes(-len(body) % 128)
        code = index >= first
        kind = {"": 0, ".shstrtab": _STRTAB, ".strtab": _STRTAB, ".symtab": _SYMTAB, ".nv.info": _INFO}
        headers.append(
            struct.pack(
                _SECTION,
                section_starts[index],
                kind.get(name, _PROGBITS),
                _ALLOCATED | _EXECUTABLE if code else 0,
                0,
                len(body) if index else 0,
                len(data),
                names.index(".symtab") if code or name == ".nv.info" else 2 if name == ".symtab" else 0,
                index - first + 1 if code else 1 if name == ".symtab" else 0,
                128 if code else 1,
                24 if name == ".symtab" else 0,
            )
        )
        body += data
    body += bytes(-len(body) % 8)
    head = bytearray(cubin[:_HEADER])
    struct.pack_into("<QQ", head, 0x20, 0, len(body))  # no program headers
    struct.pack_into("<HHHHH", head, 0x36, 0, 0, 64, len(headers), 1)
    body[:_HEADER] = head
    return bytes(body) + b"".join(headers)


def _strings(texts: Sequence[str]) -> tuple[bytes, list[int]]:
    """Return the texts one after another, each terminated by a null byte, and the offset of each."""
    table, starts = b"", []
    for text in texts:
        starts.append(len(table))
        table += text.encode() + b"\0"
    return table, starts
