"""Finds the kernels in a bare file: a .cu compiled as it is, PTX that is assembled, or machine code already in the
file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from assay.artifact import Artifact
from assay.backends import nvcc
from assay.errors import AssayError, MalformedError
from assay.inspect.code_in import Code, assemble, code_in
from assay.isa import cubin as cubins
from assay.isa.names import instance
from assay.target import Target

_PTX_TEXT = ".nv_debug_ptx_txt"


def artifacts(path: Path, target: Target) -> Iterator[Artifact]:
    """Yield every kernel in the file. Machine code is used as it is, whatever the target; PTX only if there is none."""
    if path.suffix == ".cu":
        ptx, cubin = nvcc.whole(path, target)
        yield from _of_cubin(cubin, ptx, target, nvcc.compiler(), path)
        return
    codes = code_in(path)
    machine = [c for c in codes if c.kind == "cubin"]
    for code in machine or codes:
        try:
            yield from _of_code(code, target, path)
        except AssayError as problem:
            raise type(problem)(problem.what, fix=problem.fix, where=problem.where or code.origin) from None


def _of_code(code: Code, target: Target, path: Path) -> Iterator[Artifact]:
    if code.kind == "ptx":
        yield from _of_cubin(assemble(code.data, target, code.origin), code.data, target, "ptxas", path)
        return
    ptx = next((s.data for s in cubins.sections(code.data) if s.name.startswith(_PTX_TEXT)), b"")
    text = ptx.rstrip(b"\0").replace(b"\0", b"\n")
    yield from _of_cubin(code.data, text, cubins.target(code.data), code.origin, path)


def _of_cubin(cubin: bytes, ptx: bytes, target: Target, made_by: str, path: Path) -> Iterator[Artifact]:
    kernels = cubins.functions(cubin)
    if not kernels:
        fix = (
            "write a __global__ function that is no template, or launch its instance in the file; if launch comments "
            "say how, name the op: --op NAME"
        )
        raise MalformedError("there is no kernel in it", where=str(path), fix=fix)
    source = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    for f in kernels:
        name = instance(f.symbol)
        yield Artifact(name, f.symbol, target, made_by, ptx, cubin, f.text_hash, source, f.registers, f.shared)
