"""Another forward for one module, without a trace left on it: the module's class is changed to a subclass made for it.

Why not an attribute `forward` on the module: DataParallel's replicas and deep copies would share the function, bound to
the original's weights; a pickle would hold it. A subclass's forward gets `self` from Python, so replicas use their own
weights; hooks, buffers and `__dict__` are not touched; a copy or a pickle of a swapped module is one of its original
class. isinstance, repr and torch.fx see the class they know, and torch.compile guards on a module's type."""

from __future__ import annotations

import copyreg
from abc import ABCMeta
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from assay.errors import AssayError

_BEFORE = "_assay_before"
_FREE = ("torch.", "typing.", "transformers.", "huggingface_hub.")
"""Packages whose `__init_subclass__` only fills in the new class."""


def original_class(module: nn.Module) -> type[nn.Module]:
    """The module's class below all swaps."""
    kind: type[nn.Module] = type(module)
    while _BEFORE in vars(kind):
        kind = vars(kind)[_BEFORE]
    return kind


def obstacle(module: nn.Module) -> str:
    """Why this module's forward cannot be changed; empty: it can."""
    kind = type(module)
    if isinstance(module, torch.jit.ScriptModule):
        return "TorchScript modules cannot be changed"
    if type(kind) not in (type, ABCMeta):
        return f"{kind.__name__} has a metaclass ({type(kind).__name__}) that may act on a subclass"
    for base in kind.__mro__:
        if "__init_subclass__" in vars(base) and base is not object and not f"{base.__module__}.".startswith(_FREE):
            return f"{base.__name__} acts on its subclasses (__init_subclass__)"
    return ""


def subclass(kind: type[nn.Module], forward: Callable[..., Any]) -> type[nn.Module]:
    """`kind` with another forward, under the same name."""
    names = {n: getattr(kind, n) for n in ("__module__", "__qualname__", "__doc__")}
    body = {"forward": forward, "__reduce_ex__": _reduce_as_original, _BEFORE: kind, **names}
    metaclass: Any = type(kind)
    made: type[nn.Module] = metaclass(kind.__name__, (kind,), body)
    return made


def _reduce_as_original(self: nn.Module, protocol: Any) -> Any:
    """A copy or a pickle is of the class below all swaps: the swap belongs to this model, in this process."""
    kind = original_class(self)
    made = kind.__reduce_ex__(self, protocol)
    if not isinstance(made, tuple):
        return made
    function, arguments, *rest = made
    registry: Any = copyreg
    if function is registry.__newobj__ and len(arguments) == 1:  # where pickle insists on the object's own class
        function, arguments = registry._reconstructor, (kind, object, None)
    return (function, tuple(kind if a is type(self) else a for a in arguments), *rest)


@dataclass
class ClassChange:
    """One module's class, changed."""

    path: str
    module: nn.Module
    before: type[nn.Module]
    after: type[nn.Module]
    active: bool = False

    def apply(self) -> None:
        self.active = True
        self.module.__class__ = self.after
        _touch(self.module)

    def obstacle(self) -> str:
        if type(self.module) is self.after:
            return ""
        return f"{self.path or 'the model'} was changed again since, by another swap or another library"

    def undo(self) -> None:
        self.module.__class__ = self.before
        _touch(self.module)
        self.active = False


def _touch(module: nn.Module) -> None:
    """Make compiled code look at the module again: torch.compile (2.11) skips its guards, that on the type included,
    while no dictionary below the model has changed."""
    vars(module)[_BEFORE] = None
    del vars(module)[_BEFORE]


@dataclass
class SlotChange:
    """Another module in all places where one stood."""

    path: str
    module: nn.Module
    slots: list[tuple[nn.Module, str]]
    """Parents and the names under which they hold it."""
    build: Callable[[], nn.Module]
    restore: Callable[[nn.Module], None]
    built: nn.Module | None = None

    @property
    def active(self) -> bool:
        return self.built is not None

    def apply(self) -> None:
        self.built = self.build()
        for name in _HOOKS:
            setattr(self.built, name, getattr(self.module, name))  # the same dictionaries: hooks go on running
        self.built.train(self.module.training)
        self._put(self.built)

    def obstacle(self) -> str:
        if all(parent._modules.get(name) is self.built for parent, name in self.slots):
            return ""
        return f"{self.path} was changed again since, by another swap or another library"

    def undo(self) -> None:
        assert self.built is not None
        self.restore(self.built)
        self.module._is_full_backward_hook = self.built._is_full_backward_hook
        if self.module.training != self.built.training:  # `model.eval()` in between went to the one in the slots
            self.module.train(self.built.training)
        self._put(self.module)
        self.built = None

    def _put(self, module: nn.Module) -> None:
        for parent, name in self.slots:
            parent._modules[name] = module
            _touch(parent)


_HOOKS = (
    *(n for n in vars(nn.Module()) if n.endswith(("hooks", "hooks_with_kwargs", "hooks_always_called"))),
    "_is_full_backward_hook",
)
Change = ClassChange | SlotChange


def apply(changes: list[Change]) -> None:
    """All of them, or none."""
    try:
        for change in changes:
            change.apply()
    except BaseException:
        _undo(changes)
        raise


def undo(changes: list[Change]) -> None:
    """All of them, newest first; an error, and nothing changed, where something lies on top."""
    outermost = {id(c.module): c for c in changes if c.active}  # of several on one module, the last
    for change in outermost.values():
        if why := change.obstacle():
            raise AssayError(f"this swap cannot be undone now: {why}", fix="undo that first, then this one")
    _undo(changes)


def _undo(changes: list[Change]) -> None:
    """Undo all changes, newest first. An error in one does not stop the others: it is raised at the end, and undo can
    be tried again."""
    failed: list[tuple[str, Exception]] = []
    for change in reversed(changes):
        if change.active:
            try:
                change.undo()
            except Exception as error:
                failed.append((change.path, error))
    if failed:
        messages = [f"{path}: {e.what}" for path, e in failed if isinstance(e, AssayError)]
        first = failed[0][1]
        raise AssayError("; ".join(messages), fix=first.fix) if isinstance(first, AssayError) else first
