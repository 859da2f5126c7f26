"""The plan of a swap: the decision for every site and the resulting changes to the model. Errors in the rules are
raised here, before anything is changed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from torch import nn

from assay.errors import UsageError
from assay.kernel import Kernel
from assay.models.operators.choice import Choice
from assay.models.operators.contract import Tally
from assay.models.operators.operator import operator
from assay.models.swap import fusion, replacement
from assay.models.swap.forwards import Forward, Watch, Watched, counted, watching, with_kernel
from assay.models.swap.inventory import Inventory
from assay.models.swap.report import ASKED, NO_RULE, PART_OF, Entry
from assay.models.swap.rules import CALLED, FUSIONS, Rule, Rules, Value
from assay.models.swap.sites import Form
from assay.models.swap.substitute import Substitute
from assay.models.swap.wrapping import Change, ClassChange, SlotChange, obstacle, original_class, subclass


class Plan:
    def __init__(self, model: nn.Module, rules: Mapping[str, Value], tuned: bool = False) -> None:
        """`tuned`: kernels use the values that `assay tune` chose for the shapes of their calls."""
        self._tuned = tuned
        self.model: nn.Module = getattr(model, "_orig_mod", model)  # unwrapped from torch.compile
        self.inventory = Inventory(self.model)
        self.rules = Rules(rules, self.inventory.device)
        self.inventory.adopt(self.rules)
        self.inventory.verify(self.rules)
        self.changes: list[Change] = []
        self._classes: dict[nn.Module, type[nn.Module]] = {}
        self._sites: list[tuple[nn.Module, Entry]] = []
        self._watch = Watch()
        watched = dict(self._watched())
        self._shielded = self.inventory.known_inside(set(watched))
        fused = self._fuse()
        for module, form in self.inventory.forms.items():
            self._place(module, form, fused.get(module, ""))
        for module, functions in watched.items():
            self._change(module, watching(self._class(module).forward, self._watch, functions))

    @property
    def entries(self) -> list[Entry]:
        """Entries of all sites, in the order of the model's modules."""
        order = {m: i for i, m in enumerate(self.inventory.paths)}
        return [entry for _, entry in sorted(self._sites, key=lambda site: order[site[0]])]

    def _entry(self, module: nn.Module, op: str, form: str, rule: Rule | None, path: str = "", left: str = "") -> Entry:
        entry = Entry(
            path or self.inventory.paths[module][0], op, form, rule.key if rule else "", left=left, tally=Tally()
        )
        self._sites.append((module, entry))
        return entry

    def _class(self, module: nn.Module) -> type[nn.Module]:
        return self._classes.get(module, type(module))

    def _change(self, module: nn.Module, forward: Forward) -> None:
        before = self._class(module)
        after = self._classes[module] = subclass(before, forward)
        self.changes.append(ClassChange(self.inventory.paths[module][0], module, before, after))

    # Modules.

    def _place(self, module: nn.Module, form: Form, fused: str) -> None:
        """Decide on a module that computes an op: give it a kernel, or leave it with a reason."""
        rule = self.rules.of(self.inventory.paths[module], form.op)
        if rule is None or rule.choice is None:
            self._leave(module, form, rule, ASKED if rule is not None else PART_OF + fused if fused else NO_RULE)
            return
        kernel, op = rule.choice
        whole = replacement.find(op.name)
        why = form.why or (self._replacement_obstacle(module, kernel, whole) if whole else obstacle(module))
        if not why and whole is None and form.bind is None:
            why = f"{kernel} cannot be called from a {type(module).__name__}"
        if why:
            self._leave(module, form, rule, why)
            return
        entry = self._entry(module, form.op, "module", rule)
        entry.note = f"only where {fused} falls back" if fused else ""
        if whole is not None:
            entry.kernel, entry.backward = kernel.name, whole.backward
            self.changes.append(self._replaced(module, whole, rule.choice, entry))
            return
        assert form.bind is not None
        watch = self._watch if module in self._shielded else None
        substitute = self._substitute(rule.choice, entry, form.own_autocast)
        argument = list(inspect.signature(original_class(module).forward).parameters)[1]
        self._change(module, with_kernel(self._class(module).forward, form.bind, argument, substitute, watch))

    def _leave(self, module: nn.Module, form: Form, rule: Rule | None, why: str) -> None:
        near = self.rules.near(self.inventory.paths[module], form.op) if rule is None else None
        if near is not None and near.choice is not None:
            why = f"computes {form.op}, not {near.takes}"
        self._entry(module, form.op, "module", rule or near, left=why)
        if module in self._shielded and not obstacle(module):  # otherwise its own call would count as its container's
            self._change(module, watching(self._class(module).forward, self._watch, None))

    def _replacement_obstacle(self, module: nn.Module, kernel: Kernel, whole: replacement.Replacement) -> str:
        """Return why the module cannot be replaced; empty if it can. A replacement must not take a tensor shared with a
        module that stays, as when an embedding shares its weight with the head."""
        if why := whole.refusal(module, original_class(module), kernel):
            return why
        for name, other, held, same in self.inventory.shared(module):
            if not (same and self._also_replaced(other, whole)):
                return (
                    f"its {name} shares its memory with {self.inventory.paths[other][0]}.{held}, which stays as it is"
                )
        return ""

    def _also_replaced(self, module: nn.Module, whole: replacement.Replacement) -> bool:
        form = self.inventory.forms.get(module)
        rule = self.rules.of(self.inventory.paths[module], form.op) if form else None
        if form is None or form.why or rule is None or rule.choice is None:
            return False
        kernel, op = rule.choice
        return replacement.find(op.name) is whole and not whole.refusal(module, original_class(module), kernel)

    def _replaced(self, module: nn.Module, whole: replacement.Replacement, chosen: Choice, entry: Entry) -> SlotChange:
        slots = [
            (parent, name) for parent in self.inventory.paths for name, m in parent._modules.items() if m is module
        ]
        if not slots:
            raise UsageError(f"the model itself is a {type(module).__name__}", fix="put it into an nn.Sequential")

        def build() -> nn.Module:
            built = whole.build(module, *chosen, entry.tally)
            built.__class__ = subclass(type(built), counted(type(built).forward, entry.tally))
            return built

        return SlotChange(entry.path, module, slots, build, lambda built: whole.restore(module, built))

    # Functional calls.

    def _watched(self) -> Iterator[tuple[nn.Module, Watched]]:
        """Yield modules whose functional calls a rule swaps, with the decision for each op."""
        for module, calls in self.inventory.calls.items():
            functions, blocked = Watched(), obstacle(module)
            for op in CALLED:
                rule = self.rules.of(self.inventory.paths[module], op)
                near = self.rules.near(self.inventory.paths[module], op) if rule is None else None
                decides = rule or near
                if decides is None or not (op in calls or decides.names_path_and_op):
                    continue
                if decides.choice is not None and blocked:
                    self._entry(module, op, "module", decides, left=f"its functional calls are not seen: {blocked}")
                elif rule is None or rule.choice is None:
                    why = ASKED if near is None else f"computes {op}, not {near.takes}"
                    functions.left[op] = self._entry(module, op, "function", decides, left=why)
                else:
                    entry = self._entry(module, op, "function", rule)
                    functions.substitutes[op] = self._substitute(rule.choice, entry)
            if functions.substitutes:
                yield module, functions

    # Fused pairs.

    def _fuse(self) -> dict[nn.Module, str]:
        """Plan fused pairs; return the pair's path for each module that is part of one."""
        parts: dict[nn.Module, str] = {}
        for rule in self.rules.all:
            if rule.takes not in FUSIONS:
                continue
            seen = False
            for parent, paths in self.inventory.paths.items():
                if self.rules.of(paths, rule.takes) is rule:
                    pairs = fusion.pairs(parent, self.inventory.forms, rule.takes.split("+"))
                    seen = seen or bool(pairs.fusible or pairs.why)
                    parts |= self._fuse_in(parent, pairs, rule)
            if not seen:
                first, second = rule.takes.split("+")
                raise UsageError(
                    f"rule '{rule.key}' matches nothing: no {first} whose result goes to a {second} alone",
                    fix="pairs are looked for in nn.Sequential, and in forwards that torch.fx can follow",
                )
        return parts

    def _fuse_in(self, parent: nn.Module, pairs: fusion.Pairs, rule: Rule) -> dict[nn.Module, str]:
        assert rule.takes is not None
        parts: dict[nn.Module, str] = {}
        path = self.inventory.paths[parent][0]
        if pairs.why:
            self._entry(parent, rule.takes, "fused", rule, left=ASKED if rule.choice is None else pairs.why)
        for pair in pairs.fusible:
            name = " + ".join(f"{path}.{n}" if path else n for n in pair.names)
            entry = self._entry(pair.modules[0], rule.takes, "fused", rule, name)
            if rule.choice is None:
                entry.left = ASKED
                continue
            pair.substitute = self._substitute(rule.choice, entry)
            parts |= dict.fromkeys(pair.modules, name)
        if pairs.forward is not None and rule.choice is not None:
            self._change(parent, pairs.forward)
        return parts

    def _substitute(self, chosen: Choice, entry: Entry, own_autocast: bool = False) -> Substitute:
        plain = operator(*chosen, tuned=self._tuned)
        entry.kernel, entry.backward = plain.kernel.name, plain.gradient.title
        entry.tuned = plain.tuned
        return Substitute(plain, entry, own_autocast)
