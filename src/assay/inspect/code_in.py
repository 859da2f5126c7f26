"""Finds the GPU code in a file by its content (cubin, fatbin, host object, program or PTX), and assembles PTX."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from assay import tool
from assay.errors import AssayError, BuildError, MalformedError, UsageError
from assay.isa import cubin as cubins
from assay.isa import fatbin
from assay.isa.ptx import architecture, entries, tokens
from assay.target import Target

GIVE = "give a cubin, a fatbin, a host object or program with GPU code, or PTX"
LIMIT = 120.0
"""Seconds that ptxas may take. One kernel takes milliseconds, a large library of kernels a minute."""

_COMPLAINT = re.compile(r", line (\d+); (?:error|fatal)")
_HEAD = 1 << 18
"""Number of bytes at the start of the file that must contain .version and .target."""


@dataclass(frozen=True)
class Code:
    kind: str
    """`cubin` or `ptx`."""
    target: str
    """`sm_90a` for a cubin, `compute_90` for PTX."""
    data: bytes
    origin: str
    """The file, and the image within it."""
    note: str = ""


def code_in(path: Path) -> list[Code]:
    """Return every cubin and every PTX in the file, in order. LTO-IR is left out, since only the linker can read it."""
    data = _read(path)
    try:
        return _code(data, path.name)
    except AssayError as problem:
        raise type(problem)(problem.what, fix=problem.fix, where=problem.where or str(path)) from None


def assemble(ptx: bytes, target: Target, where: str, limit: float = LIMIT) -> bytes:
    """Assemble PTX to a cubin with line tables. `where` names the PTX in messages."""
    ptxas = tool.path("ptxas")
    if not target.name.startswith("sm_"):
        raise UsageError(f"PTX cannot be assembled for {target}", fix="a GPU architecture such as sm_90")
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "code.ptx", Path(folder) / "code.cubin"
        source.write_bytes(ptx)
        command = [ptxas, f"-arch={target}", "-lineinfo", source.name, "-o", cubin.name]
        try:
            ran = tool.call(command, folder=folder, limit=limit, on=f"{len(ptx) / 1e6:,.1f} MB of PTX")
        except tool.TooLong as late:
            fix = "give it less PTX at once (one kernel a file), or a longer limit"
            raise BuildError(late.what, where=where, fix=fix) from None
        if ran.code == 0 and cubin.exists():
            return cubin.read_bytes()
        complaint = ran.complaint.replace(source.name, where)
        line = _COMPLAINT.search(complaint)
        raise BuildError(
            complaint if ran.stderr or ran.stdout else f"ptxas {complaint}",
            where=f"{where}:{line[1]}" if line else where,
            fix="fix the PTX at that line" if line and "Unsupported" not in complaint else _fix(complaint, target),
        )


def _fix(complaint: str, target: Target) -> str:
    if "Unsupported .version" in complaint:
        return "this PTX is newer than this ptxas: install the CUDA release that wrote it, or lower .version"
    return f"is it whole, and does it fit {target}? its own .target says the least it needs"


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", fix=f"name a file in it; {GIVE}")
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is a device or a pipe", fix=GIVE)
        return path.read_bytes()
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise UsageError(f"cannot read {path}: {why}", fix="is the path right, and may you read it?") from None


def _code(data: bytes, name: str) -> list[Code]:
    if not data:
        raise MalformedError("the file is empty", fix=GIVE)
    if data[:4] == b"\x7fELF" and data[18:20] == b"\xbe\0":
        return [Code("cubin", str(cubins.target(data)), data, name)]
    if data[:4] == b"\x7fELF" or fatbin.is_fatbin(data):
        return _boxed(data, name)
    if data[:8] == b"!<arch>\n":
        raise MalformedError("a static library", fix="take its members out (ar x FILE) and give one of them")
    return [_ptx(data, name)]


def _boxed(data: bytes, name: str) -> list[Code]:
    images = fatbin.images(data)
    codes = [
        Code(
            i.kind, i.target, i.data, f"{name}, image {number} of {len(images)}" + f" ({i.name})" * bool(i.name), i.note
        )
        for number, i in enumerate(images, 1)
        if i.kind != "ltoir"
    ]
    if codes:
        return codes
    if images:
        raise MalformedError(
            "it holds only LTO-IR, which is no code yet", fix="link it first (nvcc -dlto), and give that"
        )
    raise MalformedError("it holds no GPU code", fix=GIVE)


def _ptx(data: bytes, name: str) -> Code:
    head = data[:_HEAD].decode(errors="replace")
    target = architecture(head)
    if next(tokens(head), "") != ".version":
        if "\0" not in head and (target or entries(head)):
            raise MalformedError("PTX without .version", fix="its first line must be .version, e.g. .version 8.0")
        raise MalformedError("no GPU code of a known format", fix=GIVE)
    if not target:
        raise MalformedError("PTX without .target", fix="its second line must be .target, e.g. .target sm_90")
    return Code("ptx", "compute_" + target.partition("_")[2], data.rstrip(b"\0"), name)
