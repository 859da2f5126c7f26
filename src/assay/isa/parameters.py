"""The parameters of a compiled kernel: their sizes from its PTX, their C++ types from its symbol."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from assay.isa.names import parameter_types
from assay.isa.ptx import entry_parameters


@dataclass(frozen=True)
class Parameter:
    size: int
    """Size in bytes, or 0 if unknown."""
    number: str
    """The PTX type: `u64` for a pointer or an integer, `f32`, `b8` for a struct. Empty if unknown."""
    type: str
    """The C++ type, `float const*`; empty if the symbol does not give it."""


@lru_cache(512)
def parameters(symbol: str, ptx: bytes) -> tuple[Parameter, ...] | None:
    """Return the parameters of the kernel `symbol`, in order; None if nothing is known about them. `ptx` may be
    empty."""
    declared = entry_parameters(ptx.decode(errors="replace"), symbol)
    types = parameter_types(symbol)
    if declared is None:
        return None if types is None else tuple(Parameter(0, "", t) for t in types)
    if types is None or len(types) != len(declared):
        types = ("",) * len(declared)
    return tuple(Parameter(v.size, "b8" if v.shape else v.type, t) for v, t in zip(declared, types, strict=True))
