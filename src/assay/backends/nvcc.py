"""Builds with nvcc the same source and the same instance that NVRTC builds."""

from __future__ import annotations

import hashlib
import re
import tempfile
from functools import cache
from pathlib import Path

from assay import host, tool
from assay.artifact import Artifact
from assay.backends.misnamed import UNIT, misnamed, only_the_name
from assay.backends.nvrtc import HEADERS, describe, first_error, in_folder
from assay.errors import BuildError
from assay.isa import cubin as cubins
from assay.target import Target


def compiler() -> str:
    """Return nvcc's name and version. Raise tool.Missing if it is not installed."""
    return f"nvcc {tool.version(tool.path('nvcc'))}"


def include_flags() -> list[str]:
    """Return the flags by which nvcc finds the user's headers, Assay's own, and CUDA's C++ libraries."""
    library = host.cuda_cpp_include()
    folders = [*host.include_folders(), HEADERS, *([library] if library else [])]
    return [f"-I{folder}" for folder in folders]


@cache
def build(source: str, file: str, name: str, target: Target, extra: tuple[str, ...] = ()) -> Artifact:
    """Compile the one instance `name`; a reference from the host side makes nvcc instantiate the template. A process
    compiles each instance once: nvcc takes seconds."""
    made_by = compiler()
    instantiated = f'{source}\n#line 1 "{UNIT}"\nstatic void* assay_instance = (void*)({name});\n'
    ptx, cubin = _compile(instantiated, file, name, target, extra)
    symbols = [f.symbol for f in cubins.functions(cubin)]
    base = name.split("<")[0].split("::")[-1]
    symbol = next((s for s in symbols if base in s), "")
    if not symbol:
        raise misnamed(source, file, name)
    source_hash = hashlib.sha256(source.encode()).hexdigest()[:16]
    return describe(name, symbol, target, made_by, ptx, cubin, source_hash)


def whole(file: Path, target: Target, extra: tuple[str, ...] = ()) -> tuple[bytes, bytes]:
    """Return PTX and cubin of a whole file, with every kernel in it."""
    compiler()
    try:
        source = file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as problem:
        raise BuildError(f"cannot be read: {problem}", where=str(file), fix="give a text file of CUDA C++") from None
    return _compile(source, str(file.resolve()), file.name, target, extra)


def _compile(source: str, file: str, name: str, target: Target, extra: tuple[str, ...]) -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / "unit.cu"
        unit.write_text(f'#line 1 "{file}"\n{source}', encoding="utf-8")
        flags = [
            "-std=c++17",
            "-lineinfo",
            f"-I{Path(file).parent}",
            *include_flags(),
            *extra,
        ]
        arch = str(target).removeprefix("sm_")
        outputs = {}
        for kind, code in (("ptx", f"compute_{arch}"), ("cubin", f"sm_{arch}")):
            outputs[kind] = Path(folder) / f"unit.{kind}"
            form = (f"-{kind}", "-gencode", f"arch=compute_{arch},code={code}")
            ran = tool.call([tool.path("nvcc"), *form, *flags, "-o", outputs[kind], unit])
            if ran.code:
                if only_the_name(ran.complaint):
                    raise misnamed(source, file, name)
                what = f"nvcc refused {name}: {first_error(ran.complaint)}\n{ran.complaint}"
                missing = re.search(r"fatal error: (\S+): No such file", ran.complaint)
                fix = in_folder(missing[1]) if missing else "fix the source at the line named above"
                raise BuildError(what, where=file, fix=fix)
        return outputs["ptx"].read_bytes(), outputs["cubin"].read_bytes()
