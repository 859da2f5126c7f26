"""Inside a worker: builds GPU kernels with delays before their accesses to memory (isa.ptx.delays), and with stores as
late as the memory model allows (isa.ptx.postponed)."""

from __future__ import annotations

from assay.backends import backend
from assay.isa.ptx.delays import delayed
from assay.isa.ptx.postponed import postponed
from assay.worker import scratch

_codes = 0


def install(name: str, kind: str) -> None:
    """Change all that this backend builds from now on. `kind` is `random`, or `still` for the control, in which no
    store is postponed and the delays never happen."""

    def change(ptx: str) -> str:
        global _codes
        _codes += 1
        return delayed(ptx, still=True) if kind == "still" else delayed(postponed(ptx))

    backend(name).rewrite(change, scratch.folder())


def codes() -> int:
    """Return how many pieces of code were changed so far."""
    return _codes
