"""The error for a launch that names no kernel of its CUDA source. A compiler says it about a file of its own."""

from __future__ import annotations

import re
from pathlib import Path

from assay.backends.declaration import kernels
from assay.errors import BuildError

_HEADERS = {"__nv_bfloat16": "cuda_bf16.h", "__half": "cuda_fp16.h"}
_VECTOR = "assay/vector.cuh"
UNIT = "__nv_name_map"
"""The file that NVRTC names in errors about the name of an instance; nvcc is given the same name for it."""
_ERROR = re.compile(r"^(?P<file>.*?)\(\d+\): (?:catastrophic )?error", re.MULTILINE)


def only_the_name(log: str) -> bool:
    """True if all errors of a build are about the name of the instance."""
    return {match["file"] for match in _ERROR.finditer(log)} == {UNIT}


def misnamed(source: str, file: str, instance: str) -> BuildError:
    """Return the error that says which kernels a source has instead, or which header declares the type of its
    elements."""
    for element, header in _HEADERS.items():
        if element in instance and not any(name in source for name in (header, _VECTOR)):
            what = f"`{instance}`: {Path(file).name} does not declare `{element}`"
            return BuildError(
                what, fix=f"write `#include <{header}>`, or `#include <{_VECTOR}>` for loads of 16 bytes too"
            )
    known = kernels(source)
    base = instance.partition("<")[0].rpartition("::")[2].strip()
    shown = Path(file).name
    own = next((kernel for kernel in known if kernel.name == base), None)
    if own and not own.template and "<" not in instance:
        what = f"`{base}` ({shown}:{own.line}) is also the name of a function of CUDA's own headers"
        return BuildError(what, fix="give the kernel another name, or put it into a namespace")
    if own:
        what = f"`{instance}` is no instance of `{own}` in {shown}"
        fix = f"give it the template arguments of its declaration ({shown}:{own.line})" if own.template else ""
        return BuildError(what, fix=fix or f"it is no template ({shown}:{own.line}): write `{base}`")
    names = ", ".join(f"`{kernel}` ({shown}:{kernel.line})" for kernel in known)
    return BuildError(
        f"{shown} has no kernel called `{base}`",
        fix=f"it has: {names}" if names else "a kernel is a __global__ function",
    )
