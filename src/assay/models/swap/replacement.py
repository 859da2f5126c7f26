"""Swaps that put another module in a module's place, where another kernel inside its forward is not enough.

`assay.models.swap` calls a kernel with the module's own tensors wherever it can. A module that must hold other tensors
(weights packed to eight bits) is built from the original instead, and stands in its slots until undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from assay.kernel import Kernel
from assay.models.packed.packing import PACKINGS, packing
from assay.op import Op

if TYPE_CHECKING:
    from torch import nn

    from assay.models.operators.contract import Tally


class Replacement(Protocol):
    """One instance for each op that replaces modules; it keeps nothing of any one swap."""

    @property
    def op(self) -> str:
        """What a rule names: `{"linear": "mx_linear"}`."""

    @property
    def site(self) -> str:
        """The op of the sites it takes: `linear`."""

    @property
    def backward(self) -> str:
        """What computes its gradient, in the report's words."""

    def chosen(self, device: str) -> tuple[Kernel, Op] | None:
        """The kernel that a rule means by the op's name alone; None: the best that the library has of that op."""

    def refusal(self, module: nn.Module, kind: type[nn.Module], kernel: Kernel) -> str:
        """Why this module must be left as it is; empty: it can be replaced. Asked before anything is changed. `kind`:
        its class, whatever other swaps made of it."""

    def build(self, module: nn.Module, kernel: Kernel, op: Op, tally: Tally) -> nn.Module:
        """The module that stands in for it. It may take the original's tensors away (to a file, say), and must leave
        the original as it was if it raises. Hooks, `training` and the count of calls are the swap's business; where the
        kernel cannot take a call, the module computes it itself and counts it with `tally.fall_back(reason)`."""

    def restore(self, module: nn.Module, built: nn.Module) -> None:
        """Give back what `build` took, bit for bit and into the same Parameter objects. Called before the original
        returns to its slots; harmless if called twice."""


_KNOWN: dict[str, Replacement] = {known.op: known for known in PACKINGS}


def register(replacement: Replacement) -> None:
    _KNOWN[replacement.op] = replacement


def find(op: str) -> Replacement | None:
    """The replacement that a rule's value names, if it is one."""
    return _KNOWN.get(op) or packing(op)
