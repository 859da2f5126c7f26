"""Backends: each language's toolchain, which builds and launches kernels, or says what to install."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module

from assay import host
from assay.backends.base import Availability, Backend, Level
from assay.kernel import BACKENDS, Kernel

__all__ = ["Availability", "Backend", "Level", "backend", "backends", "here", "where_timed"]


@cache
def backend(name: str) -> Backend:
    instance: Backend = import_module(f"assay.backends.{name}").BACKEND
    return instance


def here(kernel: Kernel) -> Availability:
    """Return what this machine can do with the kernel."""
    availability = backend(kernel.address.backend).availability(kernel.address.variant)
    if not kernel.needs or availability.level is Level.MISSING:
        return availability
    if not host.installed(kernel.needs):
        return Availability(Level.MISSING, f"{kernel.needs} is not installed", f"pip install {kernel.needs}")
    if availability.level is not Level.RUN:  # Assay cannot build or interpret a package's kernels
        return Availability(Level.MISSING, f"{kernel.needs} needs a GPU", "run it on a machine with an NVIDIA GPU")
    return availability


def where_timed(kernel: Kernel) -> Availability:
    """Return the same as `here`, in the mode in which the kernel is timed."""
    found = here(kernel)
    return replace(found, mode=backend(kernel.address.backend).timed_mode) if found.level is Level.RUN else found


def backends() -> list[Backend]:
    return [backend(name) for name in BACKENDS]
