"""nvcc on the same source and the same instance that NVRTC builds."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from assay import host
from assay.artifact import Artifact
from assay.backends.nvrtc import HEADERS, describe
from assay.errors import AssayError, BuildError
from assay.isa import cubin as cubins
from assay.target import Target

INSTALL = "pip install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88"


@cache
def compiler() -> str:
    nvcc = host.tool("nvcc")
    if nvcc is None:
        raise AssayError("nvcc is not here", fix=INSTALL)
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return "nvcc " + next(
        word[1:] for word in said.replace(",", " ").split() if word.startswith("V") and word[1:2].isdigit()
    )


def build(source: str, file: str, name: str, target: Target, extra: tuple[str, ...] = ()) -> Artifact:
    """Compile the one instance `name`; a reference from the host side makes nvcc instantiate the template."""
    made_by = compiler()
    asked = f"{source}\nstatic void* assay_instance = (void*)({name});\n"
    ptx, cubin = _compile(asked, file, name, target, extra)
    symbols = [f.symbol for f in cubins.functions(cubin)]
    base = name.split("<")[0].split("::")[-1]
    symbol = next((s for s in symbols if base in s), "")
    source_hash = hashlib.sha256(source.encode()).hexdigest()[:16]
    return describe(name, symbol, target, made_by, ptx, cubin, source_hash)


def whole(file: Path, target: Target, extra: tuple[str, ...] = ()) -> tuple[bytes, bytes]:
    """PTX and cubin of a file as it stands, with every kernel in it."""
    compiler()
    try:
        source = file.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise BuildError(f"cannot be read: {problem}", where=str(file), fix="give a text file of CUDA C++") from None
    return _compile(source, str(file.resolve()), file.name, target, extra)


def _compile(source: str, file: str, name: str, target: Target, extra: tuple[str, ...]) -> tuple[bytes, bytes]:
    include = host.cuda_include()
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / "unit.cu"
        unit.write_text(f'#line 1 "{file}"\n{source}')
        flags = [
            "-std=c++17",
            "-lineinfo",
            f"-I{HEADERS}",
            f"-I{Path(file).parent}",
            *([f"-I{include}/cccl"] if include else []),
            *extra,
        ]
        arch = str(target).removeprefix("sm_")
        outputs = {}
        for kind, code in (("ptx", f"compute_{arch}"), ("cubin", f"sm_{arch}")):
            outputs[kind] = Path(folder) / f"unit.{kind}"
            done = subprocess.run(
                [
                    str(host.tool("nvcc")),
                    f"-{kind}",
                    "-gencode",
                    f"arch=compute_{arch},code={code}",
                    *flags,
                    "-o",
                    str(outputs[kind]),
                    str(unit),
                ],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise BuildError(
                    f"nvcc refused {name}:\n{done.stderr.strip()}",
                    where=file,
                    fix="mend the source at the line named above",
                )
        return outputs["ptx"].read_bytes(), outputs["cubin"].read_bytes()
