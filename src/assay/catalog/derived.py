"""Derived kernels: an op's reference as PyTorch evaluates it, eagerly (`op/torch`) and compiled (`op/inductor` and,
autotuned, `op/inductor:max_autotune`). They are the baselines of an op, a user's as well as the library's."""

from collections.abc import Iterable
from pathlib import Path

from assay.catalog.reader import LIBRARY
from assay.kernel import Address, Kernel
from assay.op import Op

LANGUAGES = (("torch", ""), ("inductor", ""), ("inductor", "max_autotune"))
"""The backends that can run a reference, and their variants."""


def derived(op: Op) -> list[Kernel]:
    """Return the kernels that follow from an op's reference alone. For a user's op they name the file that declares it,
    since two files may declare ops of the same name."""
    home = Path(op.source)
    if LIBRARY in home.parents:
        return [Kernel(Address(op.name, *language), file=None, returns=_returns(*language)) for language in LANGUAGES]
    line = op.reference.__code__.co_firstlineno if hasattr(op.reference, "__code__") else 0
    return [
        Kernel(Address(op.name, *language), file=None, line=line, returns=_returns(*language), op_file=home)
        for language in LANGUAGES
    ]


def _returns(backend: str, variant: str) -> bool:
    """Return whether it returns its results. PyTorch would copy them into given tensors; compiled code does not."""
    return backend == "torch"


def completed(op: Op, written: Iterable[Kernel]) -> list[Kernel]:
    """Return the kernels written for an op, and the derived ones whose addresses these do not have."""
    of_op = [k for k in written if k.address.op == op.name]
    return [*of_op, *(k for k in derived(op) if k.address not in {w.address for w in of_op})]
