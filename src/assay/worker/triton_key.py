"""Imported by a zygote: before Triton compiles anything, it hashes its own compiler, several hundred megabytes. Done
once, the result is there in every worker."""

from __future__ import annotations

import os
from importlib import import_module

if os.environ.get("TRITON_INTERPRET") != "1":  # an interpreter compiles nothing
    key = getattr(import_module("triton.runtime.cache"), "triton_key", None)  # its name in Triton 3.5 and later
    if key is not None:
        key()
