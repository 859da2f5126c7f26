"""Reads outside the tensors. A lane without a mask that reads behind a tensor's end does no harm where memory goes on
and ends the process where it does not; its value is often thrown away, so that no result shows it. Here every address
that is read is held against the bands around the tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

_edges: Any = None
"""Begin and end of every band in turn, in the order of addresses."""
_names: list[str] = []
_seen: dict[str, int] = {}


def watch(bands: Iterable[tuple[int, int, str]]) -> None:
    """From now on, note what is read in these: begin, end, and in words where that is."""
    global _edges, _names
    ordered = sorted(bands)
    _edges = np.array([edge for begin, end, _ in ordered for edge in (begin, end)], np.uint64)
    _names = [name for _, _, name in ordered]
    _seen.clear()


def told() -> str:
    """What was read outside since then; empty if nothing was. Nothing is noted any more."""
    global _edges
    _edges = None
    return ", ".join(f"{count} element{'s' * (count > 1)} {name}" for name, count in _seen.items())


def look(addresses: Any, active: Any) -> None:
    """A load is about to read these addresses, where active."""
    if _edges is None:
        return
    places = np.searchsorted(_edges, addresses, "right")
    outside = (places % 2 == 1) & active
    if outside.any():
        for place, count in zip(*np.unique(places[outside] // 2, return_counts=True), strict=True):
            name = _names[int(place)]
            _seen[name] = _seen.get(name, 0) + int(count)
