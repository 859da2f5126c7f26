"""Resolves a value to a kernel: an address, a file, or an op's name for the first kernel that can run here."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from assay.backends import Level, backend, here
from assay.catalog import library
from assay.catalog.select import select
from assay.dtype import dtype
from assay.errors import UsageError
from assay.kernel import BACKENDS, Address, Kernel
from assay.op import Op
from assay.worker import load
from assay.worker.process import MODES

Named = str | Path | Callable[..., Any]
Choice = tuple[Kernel, Op]
BEST = {"cuda": ("cuda", "triton", "cupy", "numba", "torch"), "cpu": ("njit", "torch")}
"""Order in which an op's name selects a kernel: hand-written before PyTorch's own, lower-level languages first, unless
the op's folder prefers another (`Swappable.prefer`). The order is not measured: name a faster kernel by its address.
inductor is never selected, because compiling takes seconds."""


def choose(value: Named, op: str, device: str, key: str) -> Choice:
    """Return the kernel that a value names, after checking that it runs here. `value`: an op, an address, a file, or
    the language of a kernel of `op`. `op`: selects a kernel if a file has several; may be empty. `key`: the rule, for
    messages."""
    if op and value in BACKENDS:
        value = f"{op}/{value}"
    if isinstance(value, str) and value in library.ops():
        return _best(value, device, key)
    if str(value).endswith(".cu") and not op:
        raise UsageError(f"rule '{key}': which op does {value} compute?", fix=f'name it in the key: "{key}:gelu"')
    choices = select([value], op or None)
    if len(choices) > 1:  # a file with several
        meant = [c for c in choices if c[1].name == op or (not op and not c[1].name.endswith("_backward"))]
        if len(meant) != 1:
            names = ", ".join(c[0].name for c in choices)
            one = f"{value}:{choices[0][0].name}" if str(value).endswith(".py") else choices[0][0].name
            raise UsageError(f"rule '{key}': {value} is {len(choices)} kernels: {names}", fix=f"name one: {one}")
        choices = meant
    kernel, its_op = choices[0]
    if why := _unusable(kernel):
        raise UsageError(f"rule '{key}': {kernel} cannot run here: {why}", fix=here(kernel).fix)
    # Loaded now so that an error in its file is not raised in a forward.
    load.function(kernel, its_op, dtype((kernel.dtypes or its_op.dtypes)[0]))
    return kernel, its_op


def _best(op: str, device: str, key: str) -> Choice:
    preferred = {declared.prefer.get(op) for declared in library.swappable()}
    for language in sorted(BEST.get(device, ("torch",)), key=lambda name: name not in preferred):
        for kernel in library.kernels():
            if kernel.address == Address(op, language) and not _unusable(kernel):
                return kernel, library.ops()[op]
    raise UsageError(f"rule '{key}': no kernel of {op} can run on {device} here", fix=f"`assay list {op}` says why")


def _unusable(kernel: Kernel) -> str:
    """Return why this process cannot run the kernel; empty if it can. A kernel that needs an interpreter runs only if
    the process was started for one."""
    available = here(kernel)
    started = all(os.environ.get(name) == wanted for name, wanted in MODES[available.mode].items())
    if available.level is Level.INTERPRET and started:
        _prepare(kernel.address.backend, available.mode)
        return ""
    return "" if available.level is Level.RUN else available.reason


@cache
def _prepare(name: str, mode: str) -> None:
    backend(name).prepare(mode)
