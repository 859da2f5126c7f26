"""What a number format is, and what all of them share: the way to codes and back, checks of parameters and tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import inf, prod
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats.coded import Coded
from assay.compress.formats.packing import pack, unpack
from assay.errors import UsageError
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

    from assay.compress.formats.layout import Layout


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

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """What is stored for a tensor."""

    def bits(self, shape: Sequence[int]) -> int:
        """Of a whole tensor: elements, scales and block exponents; a short block has a whole exponent too."""
        return self.layout.bits(shape)

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest finite value; infinite where a scale follows the data."""
        return -inf, inf

    def quantized(self, x: Tensor) -> Tensor:
        """The values that the format holds instead of x (float32 or float64), in x's shape and dtype. float32 holds
        each of them exactly, but for `fixed` above 25 bits and `int` above 8. No gradient passes; `through` is for
        that."""
        self._require_floats(x)
        return self._quantized(x.detach()) if x.numel() else x.detach().clone()

    def encode(self, x: Tensor) -> Coded:
        """What a file has to hold of x, float32 or float64, for `decode` to give `quantized(x).float()`."""
        self._require_floats(x)
        if not x.numel():
            return self.layout.empty(x.shape, x.device)
        codes, shared = self._codes(x.detach().double())
        return Coded(pack(codes, self.layout.width), shared, tuple(x.shape))

    def decode(self, coded: Coded) -> Tensor:
        """`quantized(x).float()` of the tensor x that was encoded."""
        self.layout.require(coded, self.name)
        if not prod(coded.shape):
            return coded.elements.new_empty(coded.shape, dtype=torch.float32)
        codes = unpack(coded.elements, self.layout.width, prod(coded.shape)).view(coded.shape)
        return self._decoded(codes, coded.shared).float()

    def _quantized(self, x: Tensor) -> Tensor:
        """Of at least one element. Formats for which arithmetic in x's dtype gives the same bits do without float64."""
        return self._values(x.double()).to(x.dtype)

    @abstractmethod
    def _values(self, x: Tensor) -> Tensor:
        """Of a float64 tensor with at least one element, as float64; x stays as it is."""

    @abstractmethod
    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Of such a tensor: int64 codes in the order of its elements, and the shared values as they are stored."""

    @abstractmethod
    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        """The values, float64 or float32, of int64 codes that have the tensor's shape."""

    def _require_floats(self, x: Tensor) -> None:
        if x.dtype not in (torch.float32, torch.float64):
            raise UsageError(f"a number format takes float32 or float64, not {x.dtype}", fix="convert it: x.float()")

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
