"""Number formats by their short names, with the parameters that rounding needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


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
    """Bit patterns that mark unwritten elements. For floats: two NaNs with odd payloads, and a number of ordinary size,
    which exposes a kernel that adds to what it finds."""

    integers: tuple[int, int] | None = None
    """The smallest and the largest value of a format without a fraction."""
    infinite: bool = True
    """Whether the format has infinities; without them a value beyond `max` becomes NaN."""

    @property
    def is_float(self) -> bool:
        return self.fraction > 0

    @property
    def torch(self) -> torch.dtype:
        value: torch.dtype = getattr(torch, self.torch_name)
        return value

    def rounded(self, exact: Tensor) -> Tensor:
        """Return the nearest values of this format as float64, ties to even. They are rounded once: PyTorch's own
        conversion of float64 to 16 and 8 bits goes through float32 and rounds twice."""
        if not self.is_float:
            return exact.to(self.torch).double()
        if self.itemsize >= 4:
            return exact.to(self.torch).double()
        exponent = (torch.frexp(exact).exponent - 1).clamp(min=self.min_exponent)
        spacing = torch.ldexp(torch.ones_like(exact), exponent - self.fraction)
        nearest = torch.where(exact.isfinite(), (exact / spacing).round() * spacing, exact)
        beyond = nearest.abs() > self.max
        outside = exact.sign() * float("inf") if self.infinite else torch.full_like(exact, float("nan"))
        return torch.where(beyond, outside, nearest).copysign(exact)

    def __str__(self) -> str:
        return self.name


_ALL = (
    DType(
        "fp64",
        "float64",
        "double",
        8,
        52,
        -1022,
        1.7976931348623157e308,
        (0x7FF8DEADBEEF5A5A, 0xFFF8C0FFEE0BADAA, 0x3FF3C0CA428C59FB),
    ),
    DType("fp32", "float32", "float", 4, 23, -126, 3.4028234663852886e38, (0x7FC5A5A5, 0xFFCABCDE, 0x3F9E0653)),
    DType("bf16", "bfloat16", "__nv_bfloat16", 2, 7, -126, 3.3895313892515355e38, (0x7FE5, 0xFFDB, 0x3F9F)),
    DType("fp16", "float16", "__half", 2, 10, -14, 65504.0, (0x7EA5, 0xFDDB, 0x3CF1)),
    DType("fp8_e4m3", "float8_e4m3fn", "__nv_fp8_e4m3", 1, 3, -6, 448.0, (0x7F, 0xFF, 0x39), infinite=False),
    DType("fp8_e5m2", "float8_e5m2", "__nv_fp8_e5m2", 1, 2, -14, 57344.0, (0x7D, 0xFE, 0x3D)),
    DType("int8", "int8", "signed char", 1, poisons=(0xA5, 0x5B, 0x81), integers=(-128, 127)),
    DType("uint8", "uint8", "unsigned char", 1, poisons=(0xA5, 0x5B, 0x81), integers=(0, 255)),
    DType("int16", "int16", "short", 2, poisons=(0x5AA5, 0x7EAD, 0x6BAD), integers=(-(2**15), 2**15 - 1)),
    DType("int32", "int32", "int", 4, poisons=(0x5A5AA5A5, 0x7EADBEEF, 0x6BADF00D), integers=(-(2**31), 2**31 - 1)),
    DType(
        "int64",
        "int64",
        "long long",
        8,
        poisons=(0x5A5AA5A55A5AA5A5, 0x7EADBEEF7EADBEEF, 0x6BADF00D6BADF00D),
        integers=(-(2**63), 2**63 - 1),
    ),
    DType("bool", "bool", "bool", 1, poisons=(0xA5, 0x5B, 0x81), integers=(0, 1)),
    # One value per byte. Two per byte are an ordinary uint8 tensor with half as many columns.
    DType("int4", "int8", "signed char", 1, poisons=(0xA5, 0x5B, 0x81), integers=(-8, 7)),
)
_ALIASES = {"half": "fp16", "float": "fp32", "double": "fp64", "e4m3": "fp8_e4m3", "e5m2": "fp8_e5m2"}
_BY_NAME = {d.torch_name: d for d in reversed(_ALL)} | {d.name: d for d in _ALL}
_BY_NAME |= {alias: _BY_NAME[name] for alias, name in _ALIASES.items()}


def dtype(name: Any) -> DType:
    """Return the format called `name`: `bf16`, `bfloat16` and `torch.bfloat16` are the same."""
    if isinstance(name, DType):
        return name
    known = _BY_NAME.get(str(name).removeprefix("torch."))
    if known is None:
        raise UsageError(f"no dtype called '{name}'", fix=f"one of: {', '.join(d.name for d in _ALL)}")
    return known
