"""What a build gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.target import Target


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
    """Of the machine code's .text alone; a cubin's other bytes change with path and time."""
    source_hash: str
    registers: int | None = None
    shared: int | None = None
    spills: int | None = None

    def summary(self) -> dict[str, Any]:
        """What a record keeps of it."""
        return {
            "name": self.name, "symbol": self.symbol, "target": str(self.target), "compiler": self.compiler,
            "ptx_bytes": len(self.ptx), "cubin_bytes": len(self.cubin), "text_hash": self.text_hash,
            "source_hash": self.source_hash, "registers": self.registers, "shared": self.shared, "spills": self.spills,
        }  # fmt: skip
