"""Finds reads outside the tensors. An unmasked lane that reads past a tensor's end is harmless if that memory is mapped
and ends the process if it is not; its value is often discarded, so no result shows it. Here every address that is read
is compared with the bands around the tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

_edges: Any = None
"""Begin and end of every band in turn, in the order of addresses."""
_names: list[str] = []
_seen: dict[str, int] = {}


def watch(bands: Iterable[tuple[int, int, str]]) -> None:
    """Start recording reads in these bands. Each has a begin, an end and a description."""
    global _edges, _names
    ordered = sorted(bands)
    _edges = np.array([edge for begin, end, _ in ordered for edge in (begin, end)], np.uint64)
    _names = [name for _, _, name in ordered]
    _seen.clear()


def reads_outside() -> str:
    """Stop recording, and return a description of the reads outside the tensors; empty if there were none."""
    global _edges
    _edges = None
    return ", ".join(f"{count} element{'s' * (count > 1)} {name}" for name, count in _seen.items())


def look(addresses: Any, active: Any) -> None:
    """Record a load from these addresses, in the active lanes."""
    if _edges is None:
        return
    places = np.searchsorted(_edges, addresses, "right")
    outside = (places % 2 == 1) & active
    if outside.any():
        for place, count in zip(*np.unique(places[outside] // 2, return_counts=True), strict=True):
            name = _names[int(place)]
            _seen[name] = _seen.get(name, 0) + int(count)
