"""What a kernel is called on a command line: the way back from `select`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay import library, provenance
from assay.kernel import Kernel
from assay.op import Op


def called(kernel: Kernel, op: Op, parameters: Mapping[str, Any] | None = None) -> str:
    """`gelu/triton`, `my.cu --op gelu`, with the file that declares its op where that is another, and with its tunables
    where they are not at their defaults."""
    inside = kernel.file is None or library.ROOT in kernel.file.parents
    words = [kernel.name if inside else provenance.shown(kernel.file)]
    if op.source and library.ROOT not in Path(op.source).parents and Path(op.source) != kernel.file:
        words.append(provenance.shown(Path(op.source)))
    if kernel.launches:
        words += ["--op", op.name]
    for name, value in (parameters or {}).items():
        words += ["--param", f"{name}={value}"]
    return shlex.join(words)
