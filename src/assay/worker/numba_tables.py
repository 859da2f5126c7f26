"""Imported by a zygote to fill numba's tables of types, which takes longer than compiling a small kernel. Numba fills
them before it compiles its first kernel; filled here, they are there in every worker.

Not imported if there is a GPU (`process.imports`): nothing that might touch the driver may happen before a fork."""

from __future__ import annotations

import os
import sys
from importlib import import_module

if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":  # a simulator compiles nothing
    cuda = "numba.cuda" in sys.modules
    registry = import_module("numba.cuda.descriptor" if cuda else "numba.core.registry")
    target = registry.cuda_target if cuda else registry.cpu_target
    target.typing_context.refresh()
    target.target_context.refresh()
