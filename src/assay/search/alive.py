"""Proof that every knob has an effect: any two of its values must give different models.

Two models differ if their tensors differ in name, shape or contents, or if their outputs for the same inputs differ, in
eval mode or, from one seed, in training mode (where dropout shows). A config knob that no code reads changes none of
these, and a search over it would try the same model again and again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from assay.search import space as spaces
from assay.search.subjects.subject import Built, Infeasible

if TYPE_CHECKING:
    from assay.search.space import Point, Space

_CONTEXTS = 20
"""Random settings of the other knobs to try if a value cannot be built with their defaults."""


@dataclass(frozen=True)
class Dead:
    knob: str
    why: str


def dead(
    space: Space, build: Callable[[Mapping[str, str]], Built], tick: Callable[[str], None] = lambda text: None
) -> list[Dead]:
    """Return the knobs that have no effect, each with the reason. A knob counts as dead, too, if no setting of the
    other knobs allows all its values, and the last one tried allows fewer than two."""
    found = []
    for name in space:
        tick(f"does {name} do anything?")
        if why := _why_dead(name, space, build):
            found.append(Dead(name, why))
    return found


def _why_dead(name: str, space: Space, build: Callable[[Mapping[str, str]], Built]) -> str:
    values = space[name].values
    if len(values) < 2:
        return ""  # fixed by the user: nothing is searched
    prints: dict[str, _Print] = {}
    for context in _contexts(name, space):
        prints = {}
        refused = ""
        for value in values:
            try:
                prints[value] = _Print(build(spaces.completed(context | {name: value}, space)))
            except Infeasible as problem:
                refused = f"{name}={value} cannot be built: {problem.what}"
        if not refused:
            break
    else:
        if len(prints) < 2:
            return refused
    alike = [(a, b) for a in prints for b in prints if a < b and prints[a].same(prints[b])]
    if not alike:
        return ""
    one, other = alike[0]
    whole = (
        f"all values of {name}" if len(alike) == len(prints) * (len(prints) - 1) // 2 else f"{name}={one} and {other}"
    )
    return f"{whole} give the same model"


def _contexts(name: str, space: Space) -> list[Point]:
    """Return settings of the other knobs: the defaults first, then random ones."""
    rng = Random(name)
    others = [{n: v for n, v in spaces.drawn(space, rng).items() if n != name} for _ in range(_CONTEXTS)]
    return [{}, *others]


class _Print:
    """Fingerprint of a model. Its parts are computed lazily: a costly one only if all cheaper ones are equal."""

    def __init__(self, built: Built) -> None:
        tensors = [*built.model.named_parameters(), *built.model.named_buffers()]
        shapes = [(name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in tensors]
        self._parts: list[Callable[[], Any]] = [
            lambda: (shapes, built.size),
            lambda: _hash(tensor for _, tensor in tensors),
            lambda: _hash(_outputs(built, training=False)),
            lambda: _hash(_outputs(built, training=True)),
        ]
        self._known: dict[int, Any] = {}

    def same(self, other: _Print) -> bool:
        return all(self.part(n) == other.part(n) for n in range(len(self._parts)))

    def part(self, number: int) -> Any:
        if number not in self._known:
            self._known[number] = self._parts[number]()
        return self._known[number]


def _outputs(built: Built, training: bool) -> list[Any]:
    import torch
    from torch.utils import _pytree as pytree

    from assay.models.subject.entry import seeded

    args, named = built.inputs
    built.model.train(training)
    with torch.no_grad(), seeded(0):
        outputs = built.model(*args, **named)
    built.model.eval()
    leaves = pytree.tree_leaves(dict(outputs) if isinstance(outputs, Mapping) else outputs)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _hash(tensors: Iterable[Any]) -> str:
    import torch

    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
