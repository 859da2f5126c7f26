"""Gives one module another forward by changing its class to a subclass made for it; the module itself is unchanged.

An attribute `forward` on the module would not do: DataParallel's replicas and deep copies would share the function,
bound to the original's weights, and a pickle would contain it. A subclass's forward gets `self` from Python, so
replicas use their own weights; hooks, buffers and `__dict__` are not touched; a copy or a pickle of a swapped module
has the original class. isinstance, repr and torch.fx see the class they know, and torch.compile guards on a module's
type."""

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
    """Return the module's class below all swaps."""
    kind: type[nn.Module] = type(module)
    while _BEFORE in vars(kind):
        kind = vars(kind)[_BEFORE]
    return kind


def obstacle(module: nn.Module) -> str:
    """Return why this module's forward cannot be changed; empty if it can."""
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
    """Return a subclass of `kind` with another forward, under the same name."""
    names = {n: getattr(kind, n) for n in ("__module__", "__qualname__", "__doc__")}
    body = {"forward": forward, "__reduce_ex__": _reduce_as_original, _BEFORE: kind, **names}
    metaclass: Any = type(kind)
    made: type[nn.Module] = metaclass(kind.__name__, (kind,), body)
    return made


def _reduce_as_original(self: nn.Module, protocol: Any) -> Any:
    """Copy or pickle with the class below all swaps, since the swap belongs to this model in this process."""
    kind = original_class(self)
    made = kind.__reduce_ex__(self, protocol)
    if not isinstance(made, tuple):
        return made
    function, arguments, *rest = made
    registry: Any = copyreg
    if function is registry.__newobj__ and len(arguments) == 1:  # here pickle insists on the object's own class
        function, arguments = registry._reconstructor, (kind, object, None)
    return (function, tuple(kind if a is type(self) else a for a in arguments), *rest)


@dataclass
class ClassChange:
    """The change of one module's class."""

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
    """Make compiled code check the module again: torch.compile (2.11) skips its guards, including the one on the type,
    as long as no dictionary below the model has changed."""
    vars(module)[_BEFORE] = None
    del vars(module)[_BEFORE]


@dataclass
class SlotChange:
    """The replacement of a module in all its places."""

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
            setattr(self.built, name, getattr(self.module, name))  # the same dictionaries, so that hooks keep running
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
        if self.module.training != self.built.training:  # `model.eval()` in between changed only the one in the slots
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
    """Apply all changes, or none."""
    try:
        for change in changes:
            change.apply()
    except BaseException:
        _undo(changes)
        raise


def undo(changes: list[Change]) -> None:
    """Undo all changes, newest first. Raise an error and change nothing if one of them is covered by a later change."""
    outermost = {id(c.module): c for c in changes if c.active}  # the last of several on one module
    for change in outermost.values():
        if why := change.obstacle():
            raise AssayError(f"this swap cannot be undone now: {why}", fix="undo that first, then this one")
    _undo(changes)


def _undo(changes: list[Change]) -> None:
    """Undo all changes, newest first. An error in one does not stop the others; it is raised at the end, and undo can
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
