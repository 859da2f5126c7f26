"""The ops and kernels of the library: found by file name and read without importing a kernel."""

from functools import cache
from importlib import import_module
from pathlib import Path

from assay.catalog.reader import LIBRARY as ROOT
from assay.catalog.reader import kernels_in, ops_in
from assay.errors import UsageError
from assay.kernel import BACKENDS, Address, Kernel
from assay.op import Op
from assay.swappable import Swappable


@cache
def ops() -> dict[str, Op]:
    """Every op of the library by name. A folder may declare several (gelu, gelu_tanh, their backward passes)."""
    return {op.name: op for file in sorted(ROOT.glob("*/op.py")) for op in ops_in(file).values()}


@cache
def ops_of(file: Path) -> dict[str, Op]:
    """The ops that a file declares; those of all its files where it is one of the library's. Read once."""
    return ops() if ROOT in file.parents else ops_in(file)


def find_op(name: str) -> Op:
    if name not in ops():
        from difflib import get_close_matches

        near = get_close_matches(name, ops(), n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise UsageError(f"no op called '{name}'", fix=f"{hint}`assay list` shows them all")
    return ops()[name]


@cache
def kernels() -> tuple[Kernel, ...]:
    """Every kernel of the library, ops in order, languages in theirs."""
    found: list[Kernel] = []
    for folder in sorted({Path(op.source).parent for op in ops().values()}):
        for file in sorted(folder.glob("*.py")):
            backend, _, variant = file.stem.partition("_")
            if backend in BACKENDS:
                found += kernels_in(file, backend=backend, variant=variant)
    written = {k.address for k in found}
    for name in ops():
        for backend in ("torch", "inductor"):
            if Address(name, backend) not in written:
                found.append(derived(name, backend))
    order = {name: i for i, name in enumerate(ops())}
    return tuple(
        sorted(found, key=lambda k: (order[k.address.op], BACKENDS.index(k.address.backend), k.address.variant))
    )


@cache
def swappable() -> tuple[Swappable, ...]:
    """What the ops of the library stand for in a model: the `declared` of every folder's swap.py."""
    folders = sorted(file.parent.name for file in ROOT.glob("*/swap.py"))
    return tuple(import_module(f"assay.library.{folder}.swap").declared for folder in folders)


def derived(op: str, backend: str) -> Kernel:
    """Where nobody wrote one, the op's reference itself is its `torch` kernel, and compiled, its `inductor` one."""
    return Kernel(Address(op, backend), file=None)
