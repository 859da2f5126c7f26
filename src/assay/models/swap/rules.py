"""The rules of a swap. A key selects sites: an op, a module's path, a glob on paths, or `path:op`. A value selects the
kernel: its address, a file, an op's name for the best kernel here, or None to leave the site alone."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from assay.catalog import library
from assay.errors import UsageError
from assay.models.operators.choice import Choice, Named, choose
from assay.models.swap import replacement

OPS = tuple(dict.fromkeys(op for declared in library.swappable() for op in declared.ops))
"""Ops that modules or functions compute."""
CALLED = tuple(dict.fromkeys(op for declared in library.swappable() if declared.functions for op in declared.ops))
"""Ops that functions compute."""
FUSIONS = {"+".join(pair): op for declared in library.swappable() for op, pair in declared.fusions.items()}
"""Pair of ops → the op that computes both."""


Value = Named | None
_GLOB = frozenset("*?[")


@dataclass(frozen=True)
class Rule:
    key: str
    value: Value
    order: int
    path: str | None
    """A module's path or a glob; None: everywhere."""
    op: str | None
    """Op of the sites; None: that of the value."""
    choice: Choice | None
    """The kernel; None: leave the site alone."""

    @property
    def glob(self) -> bool:
        return self.path is not None and bool(_GLOB & set(self.path))

    @property
    def names_path_and_op(self) -> bool:
        """Whether the rule names both a path and an op."""
        return self.path is not None and self.op is not None

    @cached_property
    def takes(self) -> str | None:
        """Op of the sites that the rule can take; None: any op, for a rule that leaves sites alone."""
        if self.op is not None or self.choice is None:
            return self.op
        name = self.choice[1].name
        swapped = replacement.find(name)
        return swapped.site if swapped else next((k for k, v in FUSIONS.items() if v == name), name)

    def matches_path(self, path: str) -> bool:
        return self.path is None or (fnmatch.fnmatchcase(path, self.path) if self.glob else path == self.path)

    def rank(self, paths: Iterable[str], op: str) -> tuple[int, int, int] | None:
        """Return how specifically the rule matches a site with these paths; None if it does not. An exact path beats a
        glob, and a glob beats an op; then the longer path wins, then the later rule."""
        if self.takes not in (None, op):
            return None
        if self.path is None:
            return 1, 0, self.order
        length = sum(c not in _GLOB for c in self.path)
        if not self.glob and self.path in paths:
            return 3, length, self.order
        inside = (p for path in paths for p in (path, *_above(path))) if self.op else iter(paths)
        return (2, length, self.order) if any(self.matches_path(p) for p in inside) else None


def _above(path: str) -> list[str]:
    """Return the containers of a path: `a.b.c` is in `a.b`, in `a` and in the model itself."""
    parts = path.split(".")
    return [".".join(parts[:n]) for n in range(len(parts) - 1, -1, -1)]


class Rules:
    ops = sorted({*OPS, *FUSIONS})
    """All ops that a rule can name."""

    def __init__(self, rules: Mapping[str, Value], device: str) -> None:
        if not rules:
            raise UsageError("no rule: nothing to swap", fix='write one as {"gelu": "gelu/triton"}')
        self.all = [self._rule(i, key, value, device) for i, (key, value) in enumerate(rules.items())]

    def _rule(self, order: int, key: str, value: Value, device: str) -> Rule:
        path: str | None
        path, colon, op = key.rpartition(":")
        if not colon:
            path, op = (None, key) if key in self.ops or "+" in key or key in library.ops() else (key, "")
        if op and op not in self.ops:
            near = get_close_matches(op, self.ops, n=3)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise UsageError(
                f"rule '{key}': no module or function is known to compute {op}",
                fix=f"{hint}known: {', '.join(self.ops)}",
            )
        rule = Rule(key, value, order, path, op or None, _chosen(value, op, device, key))
        if op and rule.choice is not None and (is_op := Rule("", value, 0, None, None, rule.choice).takes) != op:
            raise UsageError(
                f"rule '{key}': {rule.choice[0]} computes {is_op}, not {op}", fix=f"name a kernel of {op}: `assay list`"
            )
        return rule

    def of(self, paths: Iterable[str], op: str) -> Rule | None:
        """Return the rule that decides on a site."""
        ranked = [(rank, rule) for rule in self.all if (rank := rule.rank(paths, op)) is not None]
        return max(ranked, key=lambda r: r[0])[1] if ranked else None

    def near(self, paths: Iterable[str], op: str) -> Rule | None:
        """Return a rule that would decide if the site had another op of its family: `gelu` for gelu_tanh."""
        for other in family(op):
            if rule := self.of(paths, other):
                return rule
        return None


def family(op: str) -> list[str]:
    """Return the other ops declared in the same file, without backward passes."""
    if op not in library.ops():
        return []
    source = library.ops()[op].source
    return [n for n, o in library.ops().items() if o.source == source and n != op and not n.endswith("_backward")]


def _chosen(value: Value, op: str, device: str, key: str) -> Choice | None:
    """Return the kernel that a value names. A replacement may have one that is not in the library."""
    if value is None:
        return None
    whole = replacement.find(value) if isinstance(value, str) else None
    return (whole.chosen(device) if whole else None) or choose(value, FUSIONS.get(op, op), device, key)
