"""The OCP MX formats: `mxint8`, `mxfp8_e4m3`, `mxfp8_e5m2`, `mxfp6_e2m3`, `mxfp6_e3m2` and `mxfp4_e2m1`.

The rule is that of docs/mx.md for `mxint8` and torchao's for the others, computed by assay.models.packed: blocks of 32
along the last axis (the last of a row may be short) share a power of two in 8 bits; nearest, ties to even, saturated. A
NaN makes its whole block NaN; so does ±Inf in `mxint8`, while torchao's formats keep it and make the block's finite
values zero. Inputs are float32: float64 values are rounded to it first and are infinite beyond its range. A zero of
`mxint8` is +0; the others keep x's sign. A block of zeros stays zero. `mxint8` gives the values of `bfp:8:block=32`,
and the others those of `block-minifloat` with the same element, except in blocks below 2^(t − 126), where t is the
exponent of the element's largest value: there torchao has no exact powers of two, and quantising twice may change
values. bits() counts elements of the format's own width and 8 bits for each block, without torchao's padding of a short
block. Codes are the standard's: two's complement in `mxint8`, else the sign, the exponent field and the fraction from
the highest bit; `exponents` has the E8M0 byte of each block. assay.models.packed stores the same, with padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import Groups
from assay.compress.formats.layout import Layout
from assay.compress.formats.packing import pack, unpack
from assay.lazy import torch
from assay.models.packed import format as packed

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

WIDTHS = {packed.MxInt8.name: 8} | {f.name: f.width for f in packed.MX_FLOATS}


@dataclass(frozen=True)
class Mx(NumberFormat):
    kind: str

    form: ClassVar[str] = "one of " + ", ".join(WIDTHS)
    example: ClassVar[str] = "mxint8"

    def __post_init__(self) -> None:
        if self.kind not in WIDTHS:
            raise self._refusal(f"no MX format called '{self.kind}'")

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        """Parse the name; there are no parameters."""
        if len(words) != 1:
            raise cls._refusal(f"an MX format has no parameters: '{':'.join(words)}'")
        return cls(words[0])

    @property
    def name(self) -> str:
        return self.kind

    @property
    def layout(self) -> Layout:
        return Layout(WIDTHS[self.kind], Groups("group", packed.BLOCK), {"exponents": "uint8"})

    def _values(self, x: Tensor) -> Tensor:
        form, rows = packed.find(self.kind), _rows(x.float())
        return form.unpack(form.pack(rows), rows.shape[1], torch.float32).double().reshape(x.shape)

    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        form, rows = packed.find(self.kind), _rows(x.float())
        made, width = form.pack(rows), WIDTHS[self.kind]
        stream = made.elements.view(torch.uint8).flatten()
        codes = unpack(stream, width, stream.numel() * 8 // width).view(rows.shape[0], -1)[:, : rows.shape[1]]
        return codes, {"exponents": made.scales.flatten()}

    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        form, rows = packed.find(self.kind), _rows(codes)
        extents = form.extents(*rows.shape)
        width = WIDTHS[self.kind]
        whole = torch.nn.functional.pad(rows, (0, extents[0][1] * 8 // width - rows.shape[1]))
        elements = pack(whole, width).view(extents[0])
        if self.kind == packed.MxInt8.name:
            elements = elements.view(torch.int8)
        made = packed.Packed(elements, shared["exponents"].reshape(extents[1]))
        return form.unpack(made, rows.shape[1], torch.float32).reshape(codes.shape)


def _rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1] if x.ndim else 1)
