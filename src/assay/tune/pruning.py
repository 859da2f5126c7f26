"""Decides which configurations are not measured: those that cannot be launched, that duplicate another kernel, or whose
code shows that they are poor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from assay.tune.evidence import Static
from assay.tune.space import Configuration, Key, key, label
from assay.tune.static import Compiled

_FEW_WARPS = 4
"""A multiprocessor has four schedulers; with fewer warps some of them are idle."""
_MANY_SPILLS = 32
"""Bytes per thread; a few spilled registers cost nothing measurable."""
_FAR = 4.0
"""A configuration whose estimate is more than this many times the best one's is not measured."""


@dataclass
class Pruned:
    """The configurations of a space, sorted out."""

    ordered: list[Compiled] = field(default_factory=list)
    """The configurations to measure, the most promising first."""
    reasons: dict[Key, str] = field(default_factory=dict)
    """Why each of the others is not measured."""
    same_as: dict[Key, Configuration] = field(default_factory=dict)
    """For each configuration that duplicates another kernel, that other configuration."""


def pruned(compiled: Iterable[Compiled], default: Configuration) -> Pruned:
    """Sort out the configurations. The default is left out only if it cannot be built or launched."""
    result, built = Pruned(), []
    for one in compiled:
        if one.problem:
            result.reasons[key(one.configuration)] = f"it does not build: {_first_line(one.problem)}"
        elif one.excess:
            result.reasons[key(one.configuration)] = f"it cannot be launched: {one.excess}"
        else:
            built.append(one)
    built.sort(key=lambda c: (_estimate(c), c.configuration != default, label(c.configuration)))
    seen: dict[str, Configuration] = {}
    for one in sorted(built, key=lambda c: c.configuration != default):
        code = one.static.code if one.static else ""
        if code and code in seen:
            result.same_as[key(one.configuration)] = seen[code]
            result.reasons[key(one.configuration)] = f"the same code and launch as {label(seen[code])}"
        elif code:
            seen[code] = one.configuration
    left = [c for c in built if key(c.configuration) not in result.reasons]
    sound = any(c.static and not c.static.spills for c in left)
    least = min((_estimate(c) for c in left), default=math.inf)
    wide = max(((c.static.warps or 0) for c in left if c.static), default=0)
    for one in left:
        why = _poor(one.static, sound, least, wide) if one.static and one.configuration != default else ""
        if why:
            result.reasons[key(one.configuration)] = why
        else:
            result.ordered.append(one)
    return result


def _poor(static: Static, others_do_not_spill: bool, least: float, widest: int) -> str:
    """Return why the code shows that a configuration is poor; empty if it does not."""
    if (static.spills or 0) > _MANY_SPILLS and others_do_not_spill:
        return f"it spills {static.spills} bytes a thread, and other configurations spill none"
    if static.warps is not None and static.warps < min(_FEW_WARPS, widest):
        return f"a multiprocessor holds {static.warps} of its warps at once, fewer than it has schedulers"
    if static.estimate and static.estimate > _FAR * least:
        return f"by its code it takes {static.estimate / least:.1f} times as long as the most promising one"
    return ""


def _estimate(one: Compiled) -> float:
    return one.static.estimate if one.static and one.static.estimate is not None else math.inf


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    shown = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return shown if len(shown) <= 200 else f"{shown[:200]} …"
