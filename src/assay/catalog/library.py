"""The ops and kernels of the library: found by file name and read without importing a kernel."""

from functools import cache
from importlib import import_module
from pathlib import Path

from assay.catalog.derived import completed
from assay.catalog.reader import LIBRARY as ROOT
from assay.catalog.reader import kernels_in, ops_in
from assay.errors import UsageError
from assay.kernel import BACKENDS, Kernel
from assay.op import Op
from assay.settings import did_you_mean
from assay.swappable import Swappable


@cache
def ops() -> dict[str, Op]:
    """Return every op of the library by name. A folder may declare several (gelu, gelu_tanh, their backward passes)."""
    return {op.name: op for file in sorted(ROOT.glob("*/op.py")) for op in ops_in(file).values()}


@cache
def ops_of(file: Path) -> dict[str, Op]:
    """Return the ops that a file declares; for a file of the library, all of its ops. A file is read once."""
    return ops() if ROOT in file.parents else ops_in(file)


def find_op(name: str) -> Op:
    """Return an op of the library. Raise UsageError if there is none of that name."""
    if name not in ops():
        fix = f"{did_you_mean(name, ops())}`assay list` shows them all"
        if ".py:" in name:
            file = name.partition(":")[0]
            fix = f"a kernel of a file is named {file}:OP/BACKEND or {file}:OP/BACKEND:VARIANT"
        raise UsageError(f"no op called '{name}'", fix=fix)
    return ops()[name]


@cache
def kernels() -> tuple[Kernel, ...]:
    """Return every kernel of the library, ordered by op and by language."""
    result: list[Kernel] = []
    for folder in sorted({Path(op.source).parent for op in ops().values()}):
        for file in sorted(folder.glob("*.py")):
            backend, _, variant = file.stem.partition("_")
            if backend in BACKENDS:
                result += kernels_in(file, backend=backend, variant=variant)
    result = [kernel for op in ops().values() for kernel in completed(op, result)]
    order = {name: i for i, name in enumerate(ops())}
    return tuple(
        sorted(result, key=lambda k: (order[k.address.op], BACKENDS.index(k.address.backend), k.address.variant))
    )


@cache
def swappable() -> tuple[Swappable, ...]:
    """Return what the ops of the library can replace in a model: the `declared` of every folder's swap.py."""
    folders = sorted(file.parent.name for file in ROOT.glob("*/swap.py"))
    return tuple(import_module(f"assay.library.{folder}.swap").declared for folder in folders)
