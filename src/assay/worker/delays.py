"""Inside a worker: the kernels of a GPU are built with delays before their accesses to memory (isa.ptx.delays)."""

from __future__ import annotations

from assay.backends import backend
from assay.isa.ptx.delays import delayed

KINDS = ("random", "still")
"""`still`: the same instructions, which never wait."""
_codes = 0


def install(name: str, kind: str) -> None:
    """For all that this backend builds from now on."""

    def change(ptx: str) -> str:
        global _codes
        _codes += 1
        return delayed(ptx, still=kind == "still")

    backend(name).rewrite(change)


def codes() -> int:
    """How many pieces of code were changed so far."""
    return _codes
