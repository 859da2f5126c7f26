"""What an op stands for in a model: the words of `library/<op>/swap.py`, which `assay.swap` reads.

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
    """As the op's inputs, in the model's shapes."""
    attributes: tuple[float | int, ...] = ()
    cols: int = 0
    """Elements of one row, for ops over rows."""


Bound = Call | str
"""A call, or the reason why PyTorch must compute it: these arguments are outside the op."""


@dataclass(frozen=True)
class Module:
    """A class of modules whose forward computes an op."""

    bind: Callable[[Any, Any], Bound] | None
    """From the module and its input to the op's call. None: only a replacement of the whole module can take it."""
    op: Callable[[Any], str] | None = None
    """Which op this instance computes; empty: none that is known. None: the first that is declared."""
    limit: Callable[[Any], str] = lambda module: ""
    """Why this instance is outside the op whatever its input; empty: it is not."""


@dataclass(frozen=True)
class Swappable:
    """What the ops of one folder stand for."""

    ops: tuple[str, ...] = ()
    """What its modules and functions compute. A refused call counts as one of the first."""
    modules: Mapping[str, Module] = field(default_factory=dict)
    """Classes of PyTorch, `torch.nn.GELU`. A subclass counts where it inherits the forward."""
    lookalikes: Mapping[str, Module] = field(default_factory=dict)
    """Patterns for the full names of classes in other packages, `*.NewGELUActivation`. A class that matches is run on a
    few values, and swapped only if it agrees with the op's reference."""
    functions: Mapping[str, Callable[..., Bound]] = field(default_factory=dict)
    """Functions and tensor methods of PyTorch, `torch.nn.functional.gelu`, each with a function of the same parameters
    that returns the op's call."""
    callers: tuple[str, ...] = ()
    """Classes of PyTorch that call these functions in their forward."""
    hidden: str = ""
    """What else computes these ops without calling the functions, and what to do: said if a rule finds no call."""
    fusions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Op → two neighbours that it computes: it takes the tensors and attributes of the first's call."""
    prefer: Mapping[str, str] = field(default_factory=dict)
    """Op → the language of the kernel that its name alone stands for, ahead of the usual order."""
