"""Names a kernel as on a command line: the inverse of `select`."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay import host, provenance
from assay.catalog import library
from assay.catalog.reader import variant_of_cuda
from assay.kernel import Kernel
from assay.op import Op


def called(kernel: Kernel, op: Op, parameters: Mapping[str, Any] | None = None) -> str:
    """Return the words that name a kernel: `gelu/triton`, `my.cu --op gelu`, `my.cu --op my_op.py:row_sum`, of several
    in a file `my.cu:gelu/cuda:fast --op gelu` or, for a kernel derived from a user's op, `my_op.py:row_sum/torch`. If
    another file declares its op and the kernel does not name that file, it is added; so are these parameters."""
    if kernel.file is None:
        words = [f"{provenance.shown(kernel.op_file)}:{kernel.name}" if kernel.op_file else kernel.name]
    else:
        words = [kernel.name if library.ROOT in kernel.file.parents else provenance.shown(kernel.file)]
        if kernel.launches and kernel.address.variant != variant_of_cuda(kernel.file):
            words[0] += f":{kernel.name}"
    elsewhere = bool(op.source) and library.ROOT not in Path(op.source).parents and Path(op.source) != kernel.file
    home = provenance.shown(Path(op.source)) if elsewhere and not kernel.op_file else ""
    if kernel.launches:
        words += ["--op", f"{home}:{op.name}" if home else op.name]
    elif home:
        words.append(home)
    if kernel.address.backend == "cuda" and host.compiler():
        words += ["--compiler", host.compiler()]
    if kernel.address.backend == "cuda":
        words += [word for folder in host.include_folders() for word in ("-I", provenance.shown(folder))]
    for name, value in (parameters or {}).items():
        words += ["--param", f"{name}={value}"]
    return shlex.join(words)
