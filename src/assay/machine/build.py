"""All instances of one probe source in one build: one run of compiler and disassembler, not a hundred."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from assay import host
from assay.artifact import Artifact
from assay.backends import nvrtc
from assay.errors import BuildError
from assay.isa import sass
from assay.target import Target

FOLDER = Path(__file__).parent / "probes"


class Built:
    """The one cubin: its instances as artifacts, and its listing, read when first asked for."""

    def __init__(self, artifacts: dict[str, Artifact]) -> None:
        self.artifacts = artifacts
        self._listing: dict[str, sass.Function] | None = None

    def function(self, name: str) -> sass.Function:
        if self._listing is None:
            self._listing = sass.disassemble(self.artifacts[name].cubin)
        return self._listing[self.artifacts[name].symbol]


@cache
def build(source: str, names: tuple[str, ...], target: Target) -> Built:
    """Compile the instances `names` of a file in probes/, without a GPU."""
    text = _text(source)
    flags = nvrtc.options(target)
    key = hashlib.sha256(json.dumps([text, names, flags, nvrtc.compiler()]).encode()).hexdigest()[:32]
    kept = host.cache_folder() / "build" / f"{key}.machine.json"
    if kept.exists():
        data = json.loads(kept.read_text())
        symbols, ptx, cubin = data["symbols"], data["ptx"].encode(), bytes.fromhex(data["cubin"])
    else:
        symbols, ptx, cubin = _compile(text, source, names, flags)
        _write(kept, json.dumps({"symbols": symbols, "ptx": ptx.decode(), "cubin": cubin.hex()}))
    source_hash = hashlib.sha256(text.encode()).hexdigest()[:16]
    made_by = nvrtc.compiler()
    return Built(
        {name: nvrtc.describe(name, symbols[name], target, made_by, ptx, cubin, source_hash) for name in names}
    )


@cache
def _text(source: str) -> str:
    """The probe's source after what all share, its own line numbers kept."""
    return f'{(FOLDER / "common.cuh").read_text()}\n#line 1 "{source}"\n{(FOLDER / source).read_text()}'


def _write(path: Path, text: str) -> None:
    """Whole or not at all: several processes may build at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(temporary).replace(path)


def _compile(
    text: str, file: str, names: tuple[str, ...], flags: tuple[str, ...]
) -> tuple[dict[str, str], bytes, bytes]:
    from cuda.bindings import nvrtc as api

    def ask(call: Any, *arguments: Any) -> Any:
        code, *values = call(*arguments)
        if code != api.nvrtcResult.NVRTC_SUCCESS:
            raise BuildError(f"NVRTC: {api.nvrtcGetErrorString(code)[1].decode()}", where=file)
        return values[0] if values else None

    def fetch(size: Any, get: Any) -> bytes:
        room = b" " * ask(size, program)
        ask(get, program, room)
        return room

    program = ask(api.nvrtcCreateProgram, text.encode(), file.encode(), 0, [], [])
    for name in names:
        ask(api.nvrtcAddNameExpression, program, name.encode())
    code, *_ = api.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
    if code != api.nvrtcResult.NVRTC_SUCCESS:
        log = fetch(api.nvrtcGetProgramLogSize, api.nvrtcGetProgramLog).rstrip(b"\0").decode().strip()
        raise BuildError(f"NVRTC refused {file}:\n{log}", where=file)
    symbols = {name: ask(api.nvrtcGetLoweredName, program, name.encode()).decode() for name in names}
    ptx = fetch(api.nvrtcGetPTXSize, api.nvrtcGetPTX).rstrip(b"\0")
    return symbols, ptx, fetch(api.nvrtcGetCUBINSize, api.nvrtcGetCUBIN)
