"""Values for memory that was never written: a huge number, a huge negative one and NaN in turn, so that a sum, a
maximum or a minimum that includes one is visibly wrong."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

_turn = itertools.count()


@functools.cache
def _values(storage: np.dtype[Any], turn: int, count: int) -> Any:
    if storage == np.bool_:
        return np.ones(count, np.bool_)
    if np.issubdtype(storage, np.integer):
        limits = np.iinfo(storage)
        values = np.array([limits.max // 3, limits.min + limits.max // 5, limits.max - 2], storage)
    elif np.issubdtype(storage, np.inexact):
        huge = float(np.finfo(storage).max) / 1.6
        values = np.array([huge, -0.8 * huge, np.nan], storage)
    else:  # records, dates
        return np.full(count * storage.itemsize, 0x7F, np.uint8).view(storage)
    return np.resize(np.roll(values, turn), count)


def unwritten(storage: Any, shape: Any) -> Any:
    """Return an array of such values, shared and not to be changed; the first value differs from call to call."""
    return _values(np.dtype(storage), next(_turn) % 3, int(np.prod(shape))).reshape(shape)
