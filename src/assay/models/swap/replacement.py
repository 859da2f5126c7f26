"""Swaps that replace a whole module, for cases where another kernel inside its forward is not enough.

`assay.models.swap` calls a kernel with the module's own tensors wherever it can. A module that must hold other tensors
(weights packed to eight bits) is built from the original instead, and takes its place until undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from assay.kernel import Kernel
from assay.models.packed.packing import PACKINGS, packing
from assay.op import Op

if TYPE_CHECKING:
    from torch import nn

    from assay.models.operators.contract import Tally


class Replacement(Protocol):
    """One instance for each op that replaces modules; it holds no state of a particular swap."""

    @property
    def op(self) -> str:
        """The name in a rule's value: `{"linear": "mx_linear"}`."""

    @property
    def site(self) -> str:
        """The op of the sites it takes: `linear`."""

    @property
    def backward(self) -> str:
        """What computes its gradient, for the report."""

    def chosen(self, device: str) -> tuple[Kernel, Op] | None:
        """Return the kernel that a rule means by the op's name alone; None: the best one of that op in the library."""

    def refusal(self, module: nn.Module, kind: type[nn.Module], kernel: Kernel) -> str:
        """Return why this module must be left as it is; empty if it can be replaced. Called before anything is changed.
        `kind`: the module's class below all swaps."""

    def build(self, module: nn.Module, kernel: Kernel, op: Op, tally: Tally) -> nn.Module:
        """Return the replacement module. This may move the original's tensors (to a file, for example), and must leave
        the original as it was if it raises. The swap takes care of hooks, `training` and the count of calls. If the
        kernel cannot take a call, the module computes it itself and counts it with `tally.fall_back(reason)`."""

    def restore(self, module: nn.Module, built: nn.Module) -> None:
        """Restore what `build` moved, bit for bit and into the same Parameter objects. Called before the original
        returns to its place; a second call must do nothing."""


_KNOWN: dict[str, Replacement] = {known.op: known for known in PACKINGS}


def register(replacement: Replacement) -> None:
    _KNOWN[replacement.op] = replacement


def find(op: str) -> Replacement | None:
    """Return the replacement that a rule's value names, or None."""
    return _KNOWN.get(op) or packing(op)
