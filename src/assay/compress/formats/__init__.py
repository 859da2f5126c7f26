"""Number formats that round a tensor to few bits, each by an exact rule.

The docstring of each module states its rule. `parse("int:4:group=128")` returns a format. Its `quantized(x)` returns
the values that it holds instead of x, its `encode(x)` their bytes, and its `bits(shape)` the bits of a tensor."""

from __future__ import annotations

from assay.compress.formats.binary import Binary
from assay.compress.formats.block_float import BlockFloat
from assay.compress.formats.block_logarithmic import BlockLogarithmic
from assay.compress.formats.block_minifloat import BlockMinifloat
from assay.compress.formats.coded import Coded
from assay.compress.formats.fixed import Fixed
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.integer import Integer
from assay.compress.formats.logarithmic import Logarithmic
from assay.compress.formats.minifloat import Minifloat
from assay.compress.formats.mx import WIDTHS, Mx
from assay.compress.formats.residual_binary import ResidualBinary
from assay.errors import UsageError
from assay.settings import did_you_mean

KINDS: dict[str, type[NumberFormat]] = {
    "fixed": Fixed,
    "int": Integer,
    "minifloat": Minifloat,
    "log": Logarithmic,
    "bfp": BlockFloat,
    "block-minifloat": BlockMinifloat,
    "block-log": BlockLogarithmic,
    "binary": Binary,
}
"""Formats by the first word of a name. The MX formats (`WIDTHS`) and `binary:residual` are handled in `parse`."""


def parse(text: str) -> NumberFormat:
    """Return the format that `text` names; `parse(f.name) == f` for every format f."""
    first, *words = text.strip().lower().split(":")
    if first in WIDTHS:
        return Mx.parsed([first, *words])
    if first == "binary" and words[:1] == ["residual"]:
        return ResidualBinary.parsed(words)
    if first not in KINDS:
        known = [*KINDS, *WIDTHS]
        raise UsageError(
            f"no number format called '{first}'", fix=f"{did_you_mean(first, known)}there are {', '.join(known)}"
        )
    return KINDS[first].parsed(words)


__all__ = ["KINDS", "Coded", "NumberFormat", "parse"]
