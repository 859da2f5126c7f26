"""Formats with a letter in place of a number: `fixed:W:F` is one format for each width, and for each tensor.

W stands for a width that the user gives. F, the fraction of fixed point, and T, the largest exponent of the logarithmic
format, follow the tensor: of a few candidates, the one with the least squared error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.compress.formats import NumberFormat, parse
from assay.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

SHORT = {
    "fixed": "fixed:W:F",
    "int": "int:W:channel",
    "log": "log:W:e=T",
    "bfp": "bfp:W:block=32",
    "block-log": "block-log:W:block=32",
}
"""What a word alone stands for."""
_TRIED = 4
"""Candidates for F or T: that at which nothing saturates, and those with as many times finer steps."""


def written_out(text: str, fraction: int | None = None) -> str:
    """The template in full, the fraction in its place where one is given."""
    full = SHORT.get(text.strip().lower(), text.strip())
    if fraction is not None and "F" not in full.split(":"):
        raise UsageError(f"'{full}' has no fraction to be given", fix="leave out --fraction, or write fixed:W:F")
    return ":".join(str(fraction) if word == "F" and fraction is not None else word for word in full.split(":"))


def of_width(template: str, width: int | None) -> str:
    """The template with its width, checked as far as that can be done without a tensor."""
    words = template.split(":")
    if "W" in words and width is None:
        raise UsageError(f"'{template}' stands for several widths", fix="name them: --width 4,8,16")
    chosen = ":".join(str(width) if word == "W" else word for word in words)
    parse(_with(chosen, 0))
    return chosen


def fitted(chosen: str, x: Tensor) -> NumberFormat:
    """The format for this tensor."""
    if not _free(chosen):
        return parse(chosen)
    return min((parse(_with(chosen, n)) for n in _candidates(chosen, x)), key=lambda form: _error(form, x))


def _free(chosen: str) -> bool:
    return any(word in ("F", "e=T") for word in chosen.split(":"))


def _with(chosen: str, number: int) -> str:
    return ":".join({"F": str(number), "e=T": f"e={number}"}.get(word, word) for word in chosen.split(":"))


def _candidates(chosen: str, x: Tensor) -> Sequence[int]:
    largest = float(x.detach().abs().max()) if x.numel() else 0.0
    exponent = math.ceil(math.log2(largest)) if largest > 0 and math.isfinite(largest) else 0
    words = chosen.split(":")
    if "F" not in words:
        return [exponent - n for n in range(_TRIED)]
    whole = int(words[1]) - 1 - exponent  # nothing saturates, but for the largest power of two itself
    return sorted({min(126, max(0, whole + n)) for n in range(_TRIED)})


def _error(form: NumberFormat, x: Tensor) -> float:
    return float((form.quantized(x.detach()) - x.detach()).square().sum())


def of_inputs(chosen: str) -> str:
    """The same format for what comes into a layer: where a tensor or a channel has a scale, each item of the batch has
    one of its own, so that no item depends on its neighbours."""
    words = chosen.split(":")
    whole = words[0] == "int" and len(words) == 2
    return f"{chosen}:channel" if whole or chosen in ("binary:scaled", "binary:residual") else chosen
