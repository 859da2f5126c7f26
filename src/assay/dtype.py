"""Number formats by their short names, with what rounding needs to know about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class DType:
    name: str
    torch_name: str
    ctype: str
    """The C++ type in CUDA sources."""
    itemsize: int
    fraction: int = 0
    """Explicit fraction bits; 0 for integers."""
    min_exponent: int = 0
    """Exponent of the smallest normal number."""
    max: float = 0.0
    poisons: tuple[int, ...] = ()
    """Bit patterns to find unwritten elements by: two NaNs with odd payloads, and a number of ordinary size, which
    shows a kernel that adds to what it finds."""

    @property
    def is_float(self) -> bool:
        return self.fraction > 0

    @property
    def torch(self) -> torch.dtype:
        import torch

        value: torch.dtype = getattr(torch, self.torch_name)
        return value

    def __str__(self) -> str:
        return self.name


_ALL = (
    DType("fp64", "float64", "double", 8, 52, -1022, 1.7976931348623157e308,
          (0x7FF8DEADBEEF5A5A, 0xFFF8C0FFEE0BADAA, 0x3FF3C0CA428C59FB)),
    DType("fp32", "float32", "float", 4, 23, -126, 3.4028234663852886e38, (0x7FC5A5A5, 0xFFCABCDE, 0x3F9E0653)),
    DType("bf16", "bfloat16", "__nv_bfloat16", 2, 7, -126, 3.3895313892515355e38, (0x7FE5, 0xFFDB, 0x3F9F)),
    DType("fp16", "float16", "__half", 2, 10, -14, 65504.0, (0x7EA5, 0xFDDB, 0x3CF1)),
    DType("int8", "int8", "signed char", 1, poisons=(0xA5, 0x5B, 0x81)),
    DType("uint8", "uint8", "unsigned char", 1, poisons=(0xA5, 0x5B, 0x81)),
    DType("int32", "int32", "int", 4, poisons=(0x5A5AA5A5, 0x7EADBEEF, 0x6BADF00D)),
    DType("int64", "int64", "long long", 8, poisons=(0x5A5AA5A55A5AA5A5, 0x7EADBEEF7EADBEEF, 0x6BADF00D6BADF00D)),
)  # fmt: skip
_BY_NAME = {d.name: d for d in _ALL} | {d.torch_name: d for d in _ALL} | {"half": _ALL[3], "float": _ALL[1]}


def dtype(name: Any) -> DType:
    """The format called `name`: `bf16`, `bfloat16` and `torch.bfloat16` are one."""
    if isinstance(name, DType):
        return name
    found = _BY_NAME.get(str(name).removeprefix("torch."))
    if found is None:
        raise UsageError(f"no dtype called '{name}'", fix=f"one of: {', '.join(d.name for d in _ALL)}")
    return found
