"""Formats of packed weights: elements of few bits that share a scale.

In the MX formats (OCP MX v1.0) 32 elements share a power of two: MXINT8 is packed by Assay's own kernels, the float
formats by torchao. Integers share a bfloat16 in groups of any length. All have one interface."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from assay.errors import Lacking, UsageError

if TYPE_CHECKING:
    import torch

    from assay.models.operators.operator import Operator

BLOCK = 32


class Packed(NamedTuple):
    """A packed weight of `rows` × `cols`."""

    elements: torch.Tensor
    """int8 or uint8, so that casting a model to another float format leaves it alone."""
    scales: torch.Tensor
    """One for each block; the last block of a row may be shorter. MX: uint8, E8M0: 2^(code − 127), 255 for NaN.
    Integers: the bits of bfloat16 in int16, which casting a model also leaves alone."""


class Format(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def bits(self) -> float:
        """Theoretical bits of an element: its own and its share of the block's scale."""

    @property
    def op(self) -> str:
        """The op whose kernels multiply by such a weight; empty: the weight is unpacked for every call."""

    def operands(self, packed: Packed) -> tuple[torch.Tensor, torch.Tensor]:
        """Return elements and scales as the op takes them."""

    def attributes(self, cols: int) -> tuple[int, ...]:
        """Return the op's attributes for a weight with this many columns."""

    def pack(self, weight: torch.Tensor) -> Packed:
        """Pack a matrix in fp32, bf16 or fp16, on its own device."""

    def unpack(self, packed: Packed, cols: int, dtype: torch.dtype) -> torch.Tensor:
        """Return the unpacked matrix: exact in fp32, rounded once in another dtype."""

    def extents(self, rows: int, cols: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the shapes of elements and scales."""

    def prepare(self) -> None:
        """Look up in advance what `unpack` needs, because torch.compile cannot trace the lookup."""


@dataclass(frozen=True)
class MxInt8:
    language: str = "torch"
    """Language of the kernels that pack and unpack; all give the same bits. PyTorch's are used if it cannot run."""
    name: str = "mxint8"
    bits: float = 8 + 8 / BLOCK
    op: str = "mx_linear"

    def operands(self, packed: Packed) -> tuple[torch.Tensor, torch.Tensor]:
        return packed.elements, packed.scales

    def attributes(self, cols: int) -> tuple[int, ...]:
        return (BLOCK,)

    def pack(self, weight: torch.Tensor) -> Packed:
        return Packed(*_kernel("mx_quantize", self.language, weight.device.type).call(weight.contiguous(), BLOCK))

    def unpack(self, packed: Packed, cols: int, dtype: torch.dtype) -> torch.Tensor:
        import torch

        kernel = _kernel("mx_dequantize", self.language, packed.elements.device.type)
        known = dtype if dtype in kernel.contract.dtypes else torch.float32
        made: torch.Tensor = kernel.call(packed.elements, packed.scales, BLOCK, known)
        return made.to(dtype)

    def extents(self, rows: int, cols: int) -> tuple[tuple[int, int], tuple[int, int]]:
        return (rows, cols), (rows, -(-cols // BLOCK))

    def prepare(self) -> None:
        for device in ("cpu", "cuda"):
            _kernel("mx_dequantize", self.language, device)


_KERNELS: dict[tuple[str, str, str], Operator] = {}


def _kernel(op: str, language: str, device: str) -> Operator:
    key = (op, language, device)
    if key not in _KERNELS:
        _KERNELS[key] = _choose_operator(op, language, device)
    return _KERNELS[key]


def _choose_operator(op: str, language: str, device: str) -> Operator:
    from assay.models.operators.choice import choose
    from assay.models.operators.contract import devices
    from assay.models.operators.operator import operator

    for name in (f"{op}/{language}", f"{op}/torch"):
        try:
            chosen = choose(name, op, device, name)
        except UsageError:  # no such kernel, or it cannot run here
            continue
        if device in devices(chosen[0]):
            return operator(*chosen)
    raise AssertionError("PyTorch's kernels run everywhere")


@dataclass(frozen=True)
class MxFloat:
    """torchao's rule and codes. Six-bit codes, which torchao keeps in a byte each, are packed without gaps here."""

    name: str
    code: str
    """The element format's name in torch or torchao."""
    width: int
    """Bits of one element."""
    op: str = ""

    @property
    def bits(self) -> float:
        return self.width + 8 / BLOCK

    def operands(self, packed: Packed) -> tuple[torch.Tensor, torch.Tensor]:
        return packed.elements, packed.scales

    def attributes(self, cols: int) -> tuple[int, ...]:
        return ()

    def pack(self, weight: torch.Tensor) -> Packed:
        import torch
        from torch.nn.functional import pad

        # torchao takes only whole blocks, and no fp16.
        whole = pad(weight.float(), (0, -weight.shape[1] % BLOCK)).contiguous()
        scales, elements = torchao().to_mx(whole, self._element, BLOCK)
        codes = elements.view(torch.uint8)
        return Packed(_pack_six(codes) if self.width == 6 else codes, scales.view(torch.uint8))

    def unpack(self, packed: Packed, cols: int, dtype: torch.dtype) -> torch.Tensor:
        import torch

        codes = _unpack_six(packed.elements) if self.width == 6 else packed.elements
        codes = codes.view(self._element) if self.width == 8 else codes
        scales = packed.scales.view(torch.float8_e8m0fnu)
        # Unpacked to float32 first, because a scale may be beyond fp16's range.
        made: torch.Tensor = torchao().to_dtype(codes, scales, self._element, BLOCK, torch.float32)
        return made[:, :cols].to(dtype)

    def extents(self, rows: int, cols: int) -> tuple[tuple[int, int], tuple[int, int]]:
        blocks = -(-cols // BLOCK)
        return (rows, blocks * BLOCK * self.width // 8), (rows, blocks)

    def prepare(self) -> None:
        torchao()

    @property
    def _element(self) -> Any:
        import torch

        return getattr(torch, self.code, self.code)


@dataclass(frozen=True)
class Integer:
    """`int4:group=128`, `int8:channel`: values and scales of `int:4:group=128`, `int:8:channel` (docs/formats.md)."""

    width: int
    """4 or 8."""
    group: int
    """Number of neighbours that share a scale; 0: the whole row."""
    op: str = "int_linear"

    @property
    def name(self) -> str:
        return f"int{self.width}:" + (f"group={self.group}" if self.group else "channel")

    @property
    def bits(self) -> float:
        """With one scale per row, the scale is not included, since its share depends on the row's length. It then
        counts as missing from theory."""
        return self.width + (16 / self.group if self.group else 0.0)

    def operands(self, packed: Packed) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        return packed.elements, packed.scales.view(torch.bfloat16)

    def attributes(self, cols: int) -> tuple[int, ...]:
        return self.width, self.group or max(1, cols)

    def pack(self, weight: torch.Tensor) -> Packed:
        import torch

        from assay.models.packed import integers

        codes, scales = integers.quantized(weight, self.width, self.group or weight.shape[1])
        return Packed(codes, scales.view(torch.int16))

    def unpack(self, packed: Packed, cols: int, dtype: torch.dtype) -> torch.Tensor:
        from assay.models.packed import integers

        codes, scales = self.operands(packed)
        return integers.dequantized(codes, scales, self.width, self.group or cols, cols).to(dtype)

    def extents(self, rows: int, cols: int) -> tuple[tuple[int, int], tuple[int, int]]:
        return (rows, -(-cols * self.width // 8)), (rows, -(-cols // self.attributes(cols)[1]))

    def prepare(self) -> None:
        pass


INTEGER = Integer(4, 128)
"""The format meant by `int_linear`."""
_INTEGER = re.compile(r"int([48])(?::(?:(channel)|group=([1-9][0-9]{0,6})))?")
_MOST = 1 << 20
"""Maximum number of elements of a group, as in docs/formats.md."""


def integer(name: str) -> Integer | None:
    """Return the format named `int8`, `int4:group=64` or `int8:channel`; None if the name is not of an integer format.
    Raise UsageError if it is malformed."""
    if not re.match(r"int\d+(:|$)", name):
        return None
    found = _INTEGER.fullmatch(name)
    if found is None or int(found[3] or 1) > _MOST:
        raise UsageError(f"no format called '{name}'", fix=f"write int4:group=128 (at most {_MOST}) or int8:channel")
    return Integer(int(found[1]), 0 if found[2] else int(found[3] or INTEGER.group))


MX_FLOATS = (
    MxFloat("mxfp8_e4m3", "float8_e4m3fn", 8),
    MxFloat("mxfp8_e5m2", "float8_e5m2", 8),
    MxFloat("mxfp6_e2m3", "fp6_e2m3", 6),
    MxFloat("mxfp6_e3m2", "fp6_e3m2", 6),
    MxFloat("mxfp4_e2m1", "float4_e2m1fn_x2", 4),
)
NAMES = (MxInt8.name, *(f.name for f in MX_FLOATS), "int8:group=N", "int8:channel", "int4:group=N", "int4:channel")


def find(name: str, language: str = "torch") -> Format:
    """Return the format called `name`. Raise AssayError if it is unknown or needs a package that is not installed."""
    if name == MxInt8.name:
        return MxInt8(language)
    if whole := integer(name):
        return whole
    for known in MX_FLOATS:
        if known.name == name:
            torchao()
            return known
    raise UsageError(f"no format called '{name}'", fix=f"one of: {', '.join(NAMES)}")


@cache
def torchao() -> Any:
    """Return torchao's module of MX tensors."""
    try:
        with _quiet():
            from torchao.prototype.mx_formats import mx_tensor
    except ImportError as problem:
        raise Lacking(
            f"the MX float formats are torchao's, which cannot be imported here: {problem}",
            fix="pip install 'kernel-assay[models]'",
        ) from None
    return mx_tensor


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence torchao's messages about compiled extensions that it could not load; none of them is called here."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def _pack_six(codes: torch.Tensor) -> torch.Tensor:
    """Pack four codes of six bits into three bytes, the first in the lowest bits."""
    import torch

    a, b, c, d = codes.view(codes.shape[0], -1, 4).unbind(-1)
    return torch.stack((a | (b << 6), (b >> 2) | (c << 4), (c >> 4) | (d << 2)), -1).flatten(1)


def _unpack_six(packed: torch.Tensor) -> torch.Tensor:
    import torch

    x, y, z = packed.view(packed.shape[0], -1, 3).unbind(-1)
    return torch.stack((x & 63, (x >> 6 | y << 2) & 63, (y >> 4 | z << 4) & 63, z >> 2), -1).flatten(1)
