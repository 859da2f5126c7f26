"""A language's toolchain: is it here (and if not, what to install), source → artifact, launch."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from assay.backends.base import Availability, Backend, Level
from assay.kernel import BACKENDS

__all__ = ["Availability", "Backend", "Level", "backend", "backends"]


@cache
def backend(name: str) -> Backend:
    found: Backend = import_module(f"assay.backends.{name}").BACKEND
    return found


def backends() -> list[Backend]:
    return [backend(name) for name in BACKENDS]
