"""Collects ptxas's remarks on the code: registers, spills, doubles and serialised matrix products."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from assay import host, tool
from assay.artifact import Artifact
from assay.isa import cubin as cubins

_OPTIONS = ("-v", "-warn-spills", "-warn-lmem-usage", "-warn-double-usage")
_OF = re.compile(r"Compiling entry function '([^']+)'")
_NOISE = re.compile(r"bytes gmem|Compile time|Compiling entry|Function properties")
_LIMIT = 60.0


def remarks(artifact: Artifact) -> list[str] | None:
    """Return the remarks of a ptxas that compiles this PTX to exactly this `.text`; None if no installed ptxas does."""
    if not artifact.ptx:
        return None
    for ptxas in _assemblers():
        with tempfile.TemporaryDirectory() as folder:
            source, result = Path(folder) / "code.ptx", Path(folder) / "code.cubin"
            source.write_bytes(artifact.ptx)
            command = [str(ptxas), f"-arch={artifact.target}", "-lineinfo", *_OPTIONS, source.name, "-o", result.name]
            try:
                ran = tool.call(command, folder=folder, limit=_LIMIT)
            except tool.TooLong:
                continue
            if ran.code or not result.exists():
                continue
            made = next((f for f in cubins.functions(result.read_bytes()) if f.symbol == artifact.symbol), None)
            if made and made.text_hash == artifact.text_hash:
                return remarks_on(ran.stderr + ran.stdout, artifact.symbol)
    return None


def remarks_on(text: str, symbol: str) -> list[str]:
    """Return the lines of ptxas's output that concern one kernel."""
    remarks, about = [], symbol
    for line in text.splitlines():
        if opened := _OF.search(line):
            about = opened[1]
        concerned = symbol in line or (about == symbol and "'" not in line)
        words = re.sub(r"^ptxas (info|warning|advisory)\s*: ?", lambda m: "" if m[1] == "info" else f"{m[1]}: ", line)
        if concerned and not _NOISE.search(line) and words.strip():
            remarks.append(words.strip())
    return remarks


def _assemblers() -> Iterator[Path]:
    """Yield the toolkit's ptxas, then the ones that Triton contains, one of which is for Blackwell only."""
    if ptxas := host.tool("ptxas"):
        yield ptxas
    triton = importlib.util.find_spec("triton")
    if triton and triton.origin:
        yield from sorted(Path(triton.origin).parent.glob("backends/nvidia/bin/ptxas*"))
