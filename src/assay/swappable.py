"""What an op can replace in a model: the vocabulary of `library/<op>/swap.py`, which `assay.swap` reads.

Classes and functions are named, not imported, so that a declaration is light: `torch.nn.GELU`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from assay.lazy import torch

Tensors = tuple["torch.Tensor | None", ...]


class Call(NamedTuple):
    """One call of an op, as a model makes it."""

    op: str
    tensors: Tensors
    """The op's inputs, in the model's shapes."""
    attributes: tuple[float | int, ...] = ()
    cols: int = 0
    """Elements of one row, for ops over rows."""


Bound = Call | str
"""A call, or the reason why PyTorch must compute it: the op does not cover these arguments."""


@dataclass(frozen=True)
class Module:
    """A class of modules whose forward computes an op."""

    bind: Callable[[Any, Any], Bound] | None
    """Returns the op's call for a module and its input. None: only a replacement of the whole module can take it."""
    op: Callable[[Any], str] | None = None
    """Returns the op that this instance computes; empty if it is not a known one. None: the first one declared."""
    limit: Callable[[Any], str] = lambda module: ""
    """Returns why the op cannot compute this instance, whatever its input; empty if it can."""


@dataclass(frozen=True)
class Swappable:
    """What the ops of one folder can replace."""

    ops: tuple[str, ...] = ()
    """The ops that its modules and functions compute. A refused call counts as one of the first op."""
    modules: Mapping[str, Module] = field(default_factory=dict)
    """Classes of PyTorch, `torch.nn.GELU`. A subclass counts if it inherits the forward."""
    lookalikes: Mapping[str, Module] = field(default_factory=dict)
    """Patterns for the full names of classes in other packages, `*.NewGELUActivation`. A class that matches is run on a
    few values, and swapped only if it agrees with the op's reference."""
    functions: Mapping[str, Callable[..., Bound]] = field(default_factory=dict)
    """Functions and tensor methods of PyTorch, `torch.nn.functional.gelu`, each with a function of the same parameters
    that returns the op's call."""
    callers: tuple[str, ...] = ()
    """Classes of PyTorch that call these functions in their forward."""
    hidden: str = ""
    """What else computes these ops without calling the functions, and what to do: printed if a rule finds no call."""
    fusions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Op → the two adjacent ops that it fuses. It takes the tensors and attributes of the first one's call."""
    prefer: Mapping[str, str] = field(default_factory=dict)
    """Op → the language of the kernel to use if only the op is named, ahead of the usual order."""
