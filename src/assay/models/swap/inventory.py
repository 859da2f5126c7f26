"""The inventory of a model: its modules with all their paths, what they compute, and which functional calls they may
make. It also checks rules: one that matches nothing is an error that names close matches."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache, cached_property
from types import BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType
from typing import Any

import torch
from torch import nn

from assay.catalog import library
from assay.errors import UsageError
from assay.models.operators.contract import devices
from assay.models.swap.own import form_of_own, own_op
from assay.models.swap.rules import CALLED, FUSIONS, Rule, Rules, family
from assay.models.swap.sites import CALLERS, FUNCTIONS, form_of
from assay.models.swap.wrapping import original_class

_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodDescriptorType)


def may_call(module: nn.Module) -> frozenset[str]:
    """Return the ops that the module may call as functions: those mentioned by its class, its bases or other code in
    their files, and functions that it holds as attributes. Calls into code elsewhere are not followed."""
    declared = [FUNCTIONS[v][0] for v in vars(module).values() if isinstance(v, _FUNCTIONS) and v in FUNCTIONS]
    declared += [d for kind, d in CALLERS.items() if isinstance(module, kind)]
    mentioned: set[str] = set()
    for kind in original_class(module).__mro__:
        if kind is nn.Module:
            break
        if not kind.__module__.startswith("torch.nn."):  # CALLERS lists torch's own modules that call functions
            names = _names_in(kind.__module__)
            if names is None:
                return frozenset(CALLED)
            mentioned |= names
    declared += [d for d in library.swappable() if any(n.rpartition(".")[2] in mentioned for n in d.functions)]
    return frozenset(op for d in declared for op in d.ops)


def _names_in(module: str) -> frozenset[str] | None:
    """Return every name and string in the functions of a Python module; None if it is not loaded."""
    home = sys.modules.get(module)
    if home is None:
        return None
    return _names(module) if module == "__main__" else _names_kept(module)  # a notebook's module may grow


def _names(module: str) -> frozenset[str]:
    home = sys.modules[module]
    names: set[str] = set()
    for value in list(vars(home).values()):
        if getattr(value, "__module__", None) == module:
            for code in _codes(value):
                names |= {*code.co_names, *(c for c in code.co_consts if isinstance(c, str))}
    return frozenset(names)


_names_kept = cache(_names)


def _codes(value: Any) -> Iterator[CodeType]:
    """Yield the code of a function, of functions inside it and of those it wraps; for a class, of its methods."""
    members = list(vars(value).values()) if isinstance(value, type) else [value]
    functions = [getattr(m, "__func__", None) or getattr(m, "fget", None) or m for m in members]
    todo: list[Any] = [f for f in functions if isinstance(f, FunctionType)]
    seen: set[int] = set()
    while todo:
        thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, FunctionType):
            for cell in thing.__closure__ or ():
                with contextlib.suppress(ValueError):  # an empty cell
                    todo += [cell.cell_contents] if isinstance(cell.cell_contents, FunctionType) else []
            todo.append(thing.__code__)
        else:
            yield thing
            todo += [c for c in thing.co_consts if isinstance(c, CodeType)]


def _memory(tensor: torch.Tensor) -> int:
    """Return a key that is equal for tensors that share memory."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # sparse, or a subclass that has none
        return id(tensor)


class Inventory:
    def __init__(self, model: nn.Module) -> None:
        self.paths: dict[nn.Module, list[str]] = {}
        """Paths by module; a module used in several places has several."""
        for path, module in model.named_modules(remove_duplicate=False):
            self.paths.setdefault(module, []).append(path)
        self.forms = {m: form for m in self.paths if (form := form_of(m)) is not None}
        self.calls = {m: may_call(m) for m in self.paths if m not in self.forms or self.forms[m].opened}
        """Ops that may be called as functions, by module, for modules whose forward is their own code."""
        tensors = (*model.parameters(), *model.buffers())
        self.devices = [d for d, _ in Counter(t.device.type for t in tensors).most_common()]
        """Device types of its tensors, the most frequent first; empty if it has none."""

    def shared(self, module: nn.Module) -> Iterator[tuple[str, nn.Module, str, bool]]:
        """Yield tensors of other modules that share memory with this module's parameters: the parameter's name, the
        other module, the tensor's name there, and whether both are the same tensor."""
        for name, parameter in module.named_parameters(recurse=False):
            for other, held, tensor in self._holders.get(_memory(parameter), ()):
                if other is not module:
                    yield name, other, held, tensor is parameter

    @cached_property
    def _holders(self) -> dict[int, list[tuple[nn.Module, str, torch.Tensor]]]:
        holders: dict[int, list[tuple[nn.Module, str, torch.Tensor]]] = {}
        for module in self.paths:
            for name, value in {**vars(module), **module._buffers, **module._parameters}.items():
                if isinstance(value, torch.Tensor):
                    holders.setdefault(_memory(value), []).append((module, name, value))
        return holders

    @property
    def device(self) -> str:
        return self.devices[0] if self.devices else torch.get_default_device().type

    def known_inside(self, above: set[nn.Module]) -> set[nn.Module]:
        """Return known modules below those, whose calls are their own and not their containers'."""
        inside = {m for a in above for m in a.modules()} - above
        return {m for m in inside if m in self.forms and not self.forms[m].opened}

    def adopt(self, rules: Rules) -> None:
        """Make sites of the modules that a rule names by path for a kernel of a user's own op. Of modules that only
        match a pattern, take those that compute the op."""
        for rule in rules.all:
            op = own_op(rule)
            for module, paths in self.paths.items() if op is not None else ():
                if op is not None and any(map(rule.matches_path, paths)):
                    form = form_of_own(module, op)
                    if not (rule.glob and form.why):
                        self.forms[module] = form
                        self.calls.pop(module, None)

    def verify(self, rules: Rules) -> None:
        for rule in rules.all:
            if rule.path is not None:
                self._verify_path(rule, rules)
            if rule.takes not in FUSIONS and not self._matched(rule) and not self._may_match(rule):
                raise self._nothing(rule)
            if rule.choice is not None and self.devices:
                takes = devices(rule.choice[0])
                if not set(takes) & set(self.devices):
                    runs = f"{rule.choice[0]} runs on {' or '.join(takes)}"
                    raise UsageError(
                        f"rule '{rule.key}': {runs}, the model is on {self.device}",
                        fix=f"model.to('{takes[0]}'), or name another kernel",
                    )

    def _matched(self, rule: Rule) -> bool:
        return any(rule.rank(self.paths[m], form.op) is not None for m, form in self.forms.items())

    def _may_match(self, rule: Rule) -> bool:
        """Return whether the rule may apply to functional calls. These are known only once they run; a rule that names
        path and op is accepted without them."""
        ops = CALLED if rule.takes is None else tuple({rule.takes} & {*CALLED})
        return any(
            (rule.names_path_and_op or op in calls) and rule.rank(self.paths[m], op) is not None
            for m, calls in self.calls.items()
            for op in ops
        )

    def _verify_path(self, rule: Rule, rules: Rules) -> None:
        assert rule.path is not None
        everywhere = [p for paths in self.paths.values() for p in paths]
        matched = [m for m, paths in self.paths.items() if any(map(rule.matches_path, paths))]
        if not matched:
            near = get_close_matches(rule.path, [*everywhere, *rules.ops], n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"it has: {', '.join(everywhere[1:9])} …"
            raise UsageError(f"rule '{rule.key}' matches nothing: the model has no module '{rule.path}'", fix=hint)
        form = self.forms.get(matched[0])
        if not rule.glob and rule.op is None and form is not None and rule.takes not in (None, form.op):
            assert rule.choice is not None
            raise UsageError(
                f"rule '{rule.key}': {rule.path} computes {form.op}, {rule.choice[0]} computes {rule.takes}",
                fix=f"name a kernel of {form.op}",
            )

    def _nothing(self, rule: Rule) -> UsageError:
        known = [
            (paths[0], form.op)
            for m, form in self.forms.items()
            if (paths := self.paths[m]) and (rule.path is None or any(map(rule.matches_path, paths)))
        ]
        near = [f"{path} computes {op}" for path, op in known if rule.takes and op in family(rule.takes)]
        there = ", ".join(f"{op} ×{n}" for op, n in Counter(op for _, op in known).most_common())
        fix = "; ".join(near[:3]) or (f"known there: {there}" if there else "nothing known is there")
        if rule.takes in CALLED and not rule.names_path_and_op:
            fix += f". A functional call that other files hide is found if its module is named: '*:{rule.takes}'"
        where = f"in {rule.path}" if rule.path else "in the model"
        what = f"computes {rule.takes}" if rule.takes else "computes an op that is known"
        return UsageError(f"rule '{rule.key}' matches nothing: nothing {where} {what}", fix=fix)
