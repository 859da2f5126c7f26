"""Formats with a letter in place of a number: `fixed:W:F` is one format for each width and each tensor.

W is a width that the user gives. F, the fraction bits of fixed point, and T, the largest exponent of the logarithmic
format, are fitted to the tensor: of a few candidates, the one with the least squared error."""

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
"""The template that a single word abbreviates."""
_TRIED = 4
"""Number of candidates for F or T: the one at which nothing saturates, and the next ones, each with half the range."""


def written_out(text: str, fraction: int | None = None) -> str:
    """Return the full template, with the fraction filled in if one is given."""
    full = SHORT.get(text.strip().lower(), text.strip())
    if fraction is not None and "F" not in full.split(":"):
        raise UsageError(f"'{full}' has no fraction to be given", fix="leave out --fraction, or write fixed:W:F")
    return ":".join(str(fraction) if word == "F" and fraction is not None else word for word in full.split(":"))


def of_width(template: str, width: int | None) -> str:
    """Return the template with its width filled in, checked as far as possible without a tensor."""
    words = template.split(":")
    if "W" in words and width is None:
        raise UsageError(f"'{template}' stands for several widths", fix="name them: --width 4,8,16")
    chosen = ":".join(str(width) if word == "W" else word for word in words)
    parse(_with(chosen, 0))
    return chosen


def fitted(chosen: str, x: Tensor) -> NumberFormat:
    """Return the format fitted to this tensor."""
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
    whole = int(words[1]) - 1 - exponent  # nothing saturates, except the largest power of two itself
    return sorted({min(126, max(0, whole + n)) for n in range(_TRIED)})


def _error(form: NumberFormat, x: Tensor) -> float:
    return float((form.quantized(x.detach()) - x.detach()).square().sum())


def of_inputs(chosen: str) -> str:
    """Return the same format for a layer's inputs. In place of a scale per tensor or channel, each item of the batch
    has its own, so that no item depends on the others."""
    words = chosen.split(":")
    whole = words[0] == "int" and len(words) == 2
    return f"{chosen}:channel" if whole or chosen in ("binary:scaled", "binary:residual") else chosen
