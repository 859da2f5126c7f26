"""Triton's interpreter, patched to compute what a GPU computes. Each file states one difference, its source, and the
patch; all are applied once, in a worker that interprets, before the kernel's file is imported.

It imitates an NVIDIA GPU of compute capability 9.0 and the instructions that Triton 3.7.1 emits for it (read from its
PTX); the accuracy of each instruction is that of the PTX ISA."""

from __future__ import annotations

import importlib

PARTS = (
    "overhead",
    "casts",
    "arithmetic",
    "functions",
    "dot",
    "undefined",
    "atomics",
    "reductions",
    "arguments",
    "control_flow",
    "loops",
    "libdevice",
    "launch",
)

_patched = False


def patch() -> None:
    global _patched
    if _patched:
        return
    _patched = True
    for part in PARTS:
        importlib.import_module(f"{__name__}.{part}").patch()
