"""What a number format is, and what all of them share: checks of parameters and of tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, ClassVar

from assay.errors import UsageError
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor


class NumberFormat(ABC):
    """Formats are frozen dataclasses; those with equal parameters are equal."""

    form: ClassVar[str]
    """How the format is written, with its parameters in capitals."""
    example: ClassVar[str]

    @classmethod
    @abstractmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        """From the words between colons, the format's own word left out."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The text that `parse` reads as this format."""

    @abstractmethod
    def bits(self, shape: Sequence[int]) -> int:
        """Of a whole tensor: elements, scales and block exponents; a short block has a whole exponent too."""

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest finite value; infinite where a scale follows the data."""
        return -inf, inf

    def quantized(self, x: Tensor) -> Tensor:
        """The values that the format holds instead of x (float32 or float64), in x's shape and dtype. float32 holds
        each of them exactly. No gradient passes; `through` is for that."""
        if x.dtype not in (torch.float32, torch.float64):
            raise UsageError(f"a number format takes float32 or float64, not {x.dtype}", fix="convert it: x.float()")
        if x.numel() == 0:
            return x.detach().clone()
        return self._values(x.detach().double()).to(x.dtype)

    @abstractmethod
    def _values(self, x: Tensor) -> Tensor:
        """Of a float64 tensor with at least one element, as float64; x stays as it is."""

    @classmethod
    def _refusal(cls, what: str, fix: str = "") -> UsageError:
        return UsageError(what, fix=fix or f"write {cls.form}, for example {cls.example}")

    @classmethod
    def _integer(cls, word: str, what: str) -> int:
        try:
            return int(word)
        except ValueError:
            raise cls._refusal(f"{what} is not an integer: '{word}'") from None

    def _require(self, what: str, value: int, low: int, high: int) -> None:
        if not low <= value <= high:
            fix = f"write a {what} from {low} to {high}, for example {self.example}"
            raise self._refusal(f"{what} {value} is out of range", fix)
