"""Builds all instances of one probe source together: one run of the compiler and one of the disassembler."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from assay import host
from assay.artifact import Artifact
from assay.backends import nvrtc
from assay.isa import sass
from assay.target import Target

FOLDER = Path(__file__).parent / "probes"


class Built:
    """One cubin: its instances as artifacts, and its listing, which is disassembled on first use."""

    def __init__(self, artifacts: dict[str, Artifact]) -> None:
        self.artifacts = artifacts
        self._listing: dict[str, sass.Function] | None = None

    def function(self, name: str) -> sass.Function:
        if self._listing is None:
            self._listing = sass.disassemble(self.artifacts[name].cubin)
        return self._listing[self.artifacts[name].symbol]


@cache
def build(source: str, names: tuple[str, ...], target: Target) -> Built:
    """Compile the instances `names` of a file in probes/. No GPU is needed."""
    text = _text(source)
    flags = nvrtc.options(target)
    key = hashlib.sha256(json.dumps([text, names, flags, nvrtc.compiler()]).encode()).hexdigest()[:32]
    kept = host.cache_folder() / "build" / f"{key}.machine.json"
    if kept.exists():
        data = json.loads(kept.read_text())
        symbols, ptx, cubin = data["symbols"], data["ptx"].encode(), bytes.fromhex(data["cubin"])
    else:
        symbols, ptx, cubin = nvrtc.compile_all(text, source, names, flags)
        data = {"symbols": symbols, "ptx": ptx.decode(), "cubin": cubin.hex()}
        nvrtc.write(kept, json.dumps(data).encode())
    source_hash = hashlib.sha256(text.encode()).hexdigest()[:16]
    made_by = nvrtc.compiler()
    return Built(
        {name: nvrtc.describe(name, symbols[name], target, made_by, ptx, cubin, source_hash) for name in names}
    )


@cache
def _text(source: str) -> str:
    """The probe's source after the shared header, with its own line numbers."""
    return f'{(FOLDER / "common.cuh").read_text()}\n#line 1 "{source}"\n{(FOLDER / source).read_text()}'
