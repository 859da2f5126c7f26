"""The base class of number formats: encoding and decoding, and checks of parameters and tensors."""

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
    """Base class. Formats are frozen dataclasses; those with equal parameters are equal."""

    form: ClassVar[str]
    """How the format is written, with its parameters in capitals."""
    example: ClassVar[str]

    @classmethod
    @abstractmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        """Parse the words between colons, without the format's own word."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The text that `parse` reads as this format."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The codes and shared values stored for a tensor."""

    def bits(self, shape: Sequence[int]) -> int:
        """Return the bits of a tensor: elements, scales and block exponents, a whole one even for a short block."""
        return self.layout.bits(shape)

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest finite value; infinite if a scale depends on the data."""
        return -inf, inf

    def quantized(self, x: Tensor) -> Tensor:
        """Return the values that the format holds instead of x (float32 or float64), in x's shape and dtype. float32
        holds each of them exactly, except for `fixed` above 25 bits and `int` above 8. No gradient passes; use
        `through` for that."""
        self._require_floats(x)
        return self._quantized(x.detach()) if x.numel() else x.detach().clone()

    def encode(self, x: Tensor) -> Coded:
        """Encode x, float32 or float64, so that `decode` returns `quantized(x).float()`."""
        self._require_floats(x)
        if not x.numel():
            return self.layout.empty(x.shape, x.device)
        codes, shared = self._codes(x.detach().double())
        return Coded(pack(codes, self.layout.width), shared, tuple(x.shape))

    def decode(self, coded: Coded) -> Tensor:
        """Return `quantized(x).float()` of the tensor x that was encoded."""
        self.layout.require(coded, self.name)
        if not prod(coded.shape):
            return coded.elements.new_empty(coded.shape, dtype=torch.float32)
        codes = unpack(coded.elements, self.layout.width, prod(coded.shape)).view(coded.shape)
        return self._decoded(codes, coded.shared).float()

    def _quantized(self, x: Tensor) -> Tensor:
        """Quantise a tensor with at least one element. Formats override this if x's own dtype gives the same bits."""
        return self._values(x.double()).to(x.dtype)

    @abstractmethod
    def _values(self, x: Tensor) -> Tensor:
        """Return the values of a float64 tensor with at least one element, as float64, without modifying it."""

    @abstractmethod
    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return int64 codes in the order of such a tensor's elements, and the shared values as stored."""

    @abstractmethod
    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        """Return the values, float64 or float32, of int64 codes in the tensor's shape."""

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
