"""The result of a build: PTX, cubin, and what is known about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.target import Target

TO_BE_TUNED = "configurations to be tuned"
"""Suffix of the name of a build that Triton's autotuner may replace by another one when the kernel first runs."""


@dataclass(frozen=True)
class Artifact:
    name: str
    """The instance as the source names it: `gelu<__nv_bfloat16, 8>`."""
    symbol: str
    """The mangled name in PTX and cubin."""
    target: Target
    compiler: str
    """`nvrtc 13.0`, `nvcc 13.0.88`, …"""
    ptx: bytes
    cubin: bytes
    text_hash: str
    """Hash of the machine code's .text alone; a cubin's other bytes change with path and time."""
    source_hash: str
    registers: int | None = None
    shared: int | None = None
    """Bytes of static shared memory per block; a launch adds the dynamic part."""
    spills: int | None = None
    """Bytes of stack per thread for registers that did not fit; None if unknown."""
    doubt: str = ""
    """Reason why a launch on a GPU may start other code than this; empty if it cannot."""
    ir: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Intermediate representations of the compiler, by name: `ttir`, `ttgir`, `llir`."""

    @property
    def tunes_itself(self) -> bool:
        """True if the kernel times several such builds when it first runs, and chooses one."""
        return self.name.endswith(TO_BE_TUNED)

    def summary(self) -> dict[str, Any]:
        """Return the part of the artifact that a record keeps."""
        return {
            "name": self.name,
            "symbol": self.symbol,
            "target": str(self.target),
            "compiler": self.compiler,
            "ptx_bytes": len(self.ptx),
            "cubin_bytes": len(self.cubin),
            "text_hash": self.text_hash,
            "source_hash": self.source_hash,
            "registers": self.registers,
            "shared": self.shared,
            "spills": self.spills,
            "doubt": self.doubt,
        }
