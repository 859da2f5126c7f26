"""Reads a fatbin: the container of cubins and PTX in a .fatbin file, a host object or a program."""

import re
import struct
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assay import tool
from assay.errors import AssayError, MalformedError
from assay.isa.cubin import elf_sections

MAGIC = b"\x50\xed\x55\xba"

_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""The sections of executable code, and of code before device linking. A linked program has both, and only the first is
used."""
_KINDS = {1: "ptx", 2: "cubin", 8: "ltoir"}
_LZ4, _ZSTD = 0x2000, 0x8000
_ACCELERATED, _FAMILY = 0x100000, 0x200000
"""Flags for the `a` of sm_90a and the `f` of sm_100f."""
_HEADER = 64


@dataclass(frozen=True)
class Image:
    kind: str
    """`cubin`, `ptx` or `ltoir`, which is input for the linker and cannot be read."""
    target: str
    """`sm_90a` for a cubin, `compute_90` for PTX."""
    data: bytes
    name: str
    """The source file, if the compiler recorded it."""
    note: str = ""
    """The program that unpacked it, if any."""


@dataclass(frozen=True)
class _Entry:
    """An image in the form in which the file contains it."""

    image: Image
    raw: bytes
    """Header and payload."""
    packing: str
    """`zstd`, `LZ4` or empty."""


def is_fatbin(data: bytes) -> bool:
    return data[:4] == MAGIC


def images(data: bytes, limit: float = 120) -> list[Image]:
    """Return all images in file order. cuobjdump unpacks the compressed ones, within `limit` seconds."""
    entries = list(_entries(_container(data)))
    packed = [e for e in entries if e.packing and e.image.kind != "ltoir"]
    unpacked = iter(_unpack(packed, limit) if packed else ())
    all_images = [next(unpacked) if e.packing and e.image.kind != "ltoir" else e.image for e in entries]
    return [replace(i, data=i.data.rstrip(b"\0")) if i.kind == "ptx" else i for i in all_images]


def _container(data: bytes) -> bytes:
    if is_fatbin(data):
        return data
    if data[:4] != b"\x7fELF":
        raise _malformed("neither a fatbin nor an object or program")
    by_name = {s.name: s.data for s in elf_sections(data)}
    return next((by_name[name] for name in _SECTIONS if by_name.get(name)), b"")


def _entries(data: bytes) -> Iterator[_Entry]:
    """Yield the entries of all fatbins. A program's section contains several, each aligned to eight bytes."""
    at = 0
    while at < len(data):
        if data[at : at + 8] == bytes(8):
            at += 8
            continue
        if data[at : at + 4] != MAGIC or at + 16 > len(data):
            raise _malformed(f"no fatbin begins at byte {at}")
        header, size = struct.unpack_from("<HQ", data, at + 6)
        end = at + header + size
        if header < 16 or end > len(data):
            raise _malformed(f"a fatbin should reach to byte {end} of {len(data)}")
        at += header
        while at < end:
            entry = _entry(data[at:end], at)
            at += len(entry.raw)
            yield entry
        at += -at % 8


def _entry(data: bytes, at: int) -> _Entry:
    """Return the entry at the beginning of `data`. Its header: (kind, version, size of header, size), (packed size,
    options), version, (arch, name), (flags, 0, whole size)."""
    if len(data) < _HEADER:
        raise _malformed(f"the fatbin ends within the header of the image at byte {at}")
    kind, _, header, size = struct.unpack_from("<HHIQ", data)
    arch, name_at, name_size, flags = struct.unpack_from("<IIIQ", data, 28)
    if header < _HEADER or header + size > len(data):
        raise _malformed(f"the image at byte {at} should reach to byte {at + header + size} of {at + len(data)}")
    if kind not in _KINDS:
        raise _malformed(f"the image at byte {at} is of kind {kind}: neither PTX (1), cubin (2) nor LTO-IR (8)")
    suffix = "a" if flags & _ACCELERATED else "f" if flags & _FAMILY else ""
    image = Image(
        _KINDS[kind],
        f"{'sm' if kind == 2 else 'compute'}_{arch}{suffix}",
        data[header : header + size],
        data[name_at : name_at + name_size].rstrip(b"\0").decode(errors="replace") if name_at < header else "",
    )
    packing = "zstd" if flags & _ZSTD else "LZ4" if flags & _LZ4 else ""
    return _Entry(image, data[: header + size], packing)


def _unpack(entries: Sequence[_Entry], limit: float) -> list[Image]:
    """Return the unpacked images. All compressed images go into one fatbin for a single call of cuobjdump, which
    numbers the files that it extracts."""
    try:
        cuobjdump = tool.path("cuobjdump")
    except tool.Missing as gone:
        what = f"{entries[0].packing}-compressed code needs cuobjdump, which is not here"
        raise AssayError(what, fix=gone.fix) from None
    # Remove the names: cuobjdump numbers only the files of unnamed images, and overwrites files of the same name.
    body = b"".join(e.raw[:32] + bytes(8) + e.raw[40:] for e in entries)
    with tempfile.TemporaryDirectory() as folder:
        box = Path(folder) / "box.fatbin"
        box.write_bytes(MAGIC + struct.pack("<HHQ", 1, 16, len(body)) + body)
        flags = [{"cubin": "-xelf", "ptx": "-xptx"}[kind] for kind in sorted({e.image.kind for e in entries})]
        command = [cuobjdump, *(word for flag in flags for word in (flag, "all")), box.name]
        fix = "extract what you need with cuobjdump -xelf NAME, and give that"
        ran = tool.call(command, folder=folder, limit=limit, on=f"{len(body):,} bytes to unpack", fix=fix)
        files = {
            kind: iter(sorted(Path(folder).glob(f"box.*.{kind}"), key=lambda f: int(re.findall(r"\d+", f.name)[0])))
            for kind in ("cubin", "ptx")
        }
        unpacked = []
        for entry in entries:
            file = next(files[entry.image.kind], None)
            if file is None:
                complaint = ran.complaint.replace(str(folder), "")
                raise _malformed(f"cuobjdump cannot unpack the {entry.packing}-compressed images: {complaint}")
            note = f"{entry.packing}-compressed; unpacked by cuobjdump"
            unpacked.append(replace(entry.image, data=file.read_bytes(), note=note))
    return unpacked


def _malformed(what: str) -> MalformedError:
    return MalformedError(what, fix="build or copy the file again: it is cut short, damaged, or no fatbin")
