"""NVRTC: CUDA C++ in, PTX and cubin out, with no driver and no GPU."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from assay import host
from assay.artifact import Artifact
from assay.backends import includes
from assay.backends.misnamed import misnamed, only_the_name
from assay.errors import BuildError
from assay.isa import cubin as cubins
from assay.isa.ptx import tokens
from assay.target import Target

HEADERS = Path(__file__).parent / "include"
"""The library's own device headers, `#include <assay/...>`."""


@cache
def compiler() -> str:
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"nvrtc {major}.{minor}"


def options(target: Target, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    return (
        f"-arch={target}",
        "-std=c++17",
        "-lineinfo",
        *extra,  # first: a source's own folder comes before the library's
        *(f"-I{folder}" for folder in host.include_folders()),
        f"-I{HEADERS}",
        *(f"-I{folder}" for folder in host.cuda_headers()),
    )


def build(
    source: str, file: str, name: str, target: Target, extra: tuple[str, ...] = (), named: bool = True
) -> Artifact:
    """Compile the one instance `name` of `source`. `named` is false for extern "C" kernels, which need no lowering.
    Results are kept on disk under a hash of everything that goes in, if all of that is known."""
    flags = options(target, extra)
    headers = includes.digest(source, Path(file), flags, host.cuda_include())
    source_hash = hashlib.sha256(source.encode()).hexdigest()[:16]
    key = hashlib.sha256(json.dumps([source, headers, file, name, flags, compiler()]).encode()).hexdigest()[:32]
    folder = host.cache_folder() / "build"
    kept = [folder / f"{key}.{kind}" for kind in ("symbol", "ptx", "cubin")]
    if headers is not None and all(p.exists() for p in kept):
        symbol, ptx, cubin = kept[0].read_text(), kept[1].read_bytes(), kept[2].read_bytes()
    else:
        symbols, ptx, cubin = compile_all(source, file, (name,) if named else (), flags)
        symbol = symbols.get(name, name)
        if headers is not None:
            for path, data in zip(kept, (symbol.encode(), ptx, cubin), strict=True):
                write(path, data)
    return describe(name, symbol, target, compiler(), ptx, cubin, source_hash)


def describe(
    name: str, symbol: str, target: Target, made_by: str, ptx: bytes, cubin: bytes, source_hash: str
) -> Artifact:
    function = next((f for f in cubins.functions(cubin) if f.symbol == symbol), None)
    if function is None:
        raise BuildError(f"the build of {name} holds no kernel called {symbol}", fix="is it a __global__ function?")
    # The whole stack is spills, unless the kernel keeps variables of its own there.
    spills = function.stack if not function.stack or ".local" not in tokens(ptx.decode(errors="replace")) else None
    return Artifact(
        name,
        symbol,
        target,
        made_by,
        ptx,
        cubin,
        function.text_hash,
        source_hash,
        function.registers,
        function.shared,
        spills,
    )


def write(path: Path, data: bytes) -> None:
    """Write a file atomically, because several processes build at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as f:
        f.write(data)
    Path(temporary).replace(path)


def compile_all(
    source: str, file: str, names: tuple[str, ...], flags: tuple[str, ...]
) -> tuple[dict[str, str], bytes, bytes]:
    """Compile one program; return the symbol of every instance named, PTX and cubin."""
    from cuda.bindings import nvrtc

    def checked(call: Any, *args: Any) -> Any:
        code, *values = call(*args)
        if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise BuildError(f"NVRTC: {nvrtc.nvrtcGetErrorString(code)[1].decode()}", where=file)
        return values[0] if values else None

    def fetch(size: Any, get: Any) -> bytes:
        room = b" " * checked(size, program)
        checked(get, program, room)
        return room

    program = checked(nvrtc.nvrtcCreateProgram, source.encode(), file.encode(), 0, [], [])
    for name in names:
        checked(nvrtc.nvrtcAddNameExpression, program, name.encode())
    code, *_ = nvrtc.nvrtcCompileProgram(program, len(flags), [f.encode() for f in flags])
    if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = (
            fetch(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).rstrip(b"\0").decode(errors="replace").strip()
        )
        if len(names) == 1 and only_the_name(log):
            raise misnamed(source, file, names[0])
        what = names[0] if len(names) == 1 else file
        raise BuildError(f"NVRTC refused {what}: {first_error(log)}\n{log}", where=file, fix=_advice(log))
    symbols = {name: checked(nvrtc.nvrtcGetLoweredName, program, name.encode()).decode() for name in names}
    ptx = fetch(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).rstrip(b"\0")
    return symbols, ptx, fetch(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)


_STANDARD = {
    f"{name}.h"
    for name in ("assert", "float", "limits", "math", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string")
}
"""C's headers, which NVRTC does not have; C++'s have no suffix."""


_INSTEAD = {
    "math": "leave it out, its functions (expf, rsqrtf) are built in",
    "stdint": "#include <cuda/std/cstdint>",
    "limits": "#include <cuda/std/limits>",
    "float": "#include <cuda/std/limits>",
    "stddef": "#include <cuda/std/cstddef>",
    "type_traits": "#include <cuda/std/type_traits>",
    "algorithm": "write min, max and the like yourself",
}
"""What to do without a header, by its name without the `c` of C++ and the `.h` of C."""
_INSTEAD_OF_NAMES = {
    "INFINITY": "write CUDART_INF_F, of <math_constants.h>",
    **{
        f"{sign}int{bits}_t": f"#include <cuda/std/cstdint>, and write cuda::std::{sign}int{bits}_t"
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}


def in_folder(header: str) -> str:
    """Return what to do about a header that was not found."""
    return f'name the folder of {header}: -I FOLDER, or write its place relative to the .cu file: #include "…"'


def first_error(log: str) -> str:
    """Return the first error of a compiler's output, for a headline."""
    lines = (line.strip() for line in log.splitlines())
    first = next((line for line in lines if "error" in line or "fatal" in line), "")
    return re.sub(r"^\S*/(?=[^/\s]+\()", "", first)


def _advice(log: str) -> str:
    if missing := re.search(r'cannot open source file "([^"]+)"', log):
        if "." not in missing[1] or missing[1] in _STANDARD:
            instead = _INSTEAD.get(missing[1].removesuffix(".h").removeprefix("c"), "see docs/languages.md")
            return f"NVRTC has no C++ standard library: {instead}, or compile it with --compiler nvcc"
        return in_folder(missing[1])
    undefined = re.search(r'identifier "(\w+)" is undefined', log)
    if undefined and undefined[1] in _INSTEAD_OF_NAMES:
        instead = _INSTEAD_OF_NAMES[undefined[1]]
        return f"NVRTC has no C++ standard library: {instead}, or compile it with --compiler nvcc"
    if "invalid value for --gpu-architecture" in log:
        return "name a target that this compiler knows: --target sm_80, sm_90, sm_90a, sm_100, …"
    return "fix the source at the line named above"
