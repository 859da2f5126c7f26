"""Dynamo's and inductor's counters, graph breaks with their reasons, and a strict mode in which torch.compile does not
fall back to eager silently. For use in a process that compiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.provenance import shown

_SHORTEST = 1e-3
"""Seconds below which phases of compiling are left out."""


def strict(limit: int = 0) -> None:
    """Make torch.compile raise where it would run code eagerly with no more than a warning. `limit`: times one function
    may be compiled; 0: torch's default."""
    import torch._dynamo.config as config

    config.fail_on_recompile_limit_hit = True
    config.suppress_errors = False
    if limit:
        config.recompile_limit = limit


def counts() -> dict[str, Any]:
    """Return dynamo's and inductor's counters since the process began, or since `forget`."""
    from torch._dynamo.utils import counters

    inductor, autograd = counters["inductor"], counters["aot_autograd"]
    return {
        "frames": counters["frames"].get("ok", 0),
        "graphs": counters["stats"].get("unique_graphs", 0),
        "operators": counters["stats"].get("calls_captured", 0),
        "breaks": sum(counters["graph_break"].values()),
        "cache": {
            "hits": inductor.get("fxgraph_cache_hit", 0),
            "misses": inductor.get("fxgraph_cache_miss", 0),
            "bypassed": inductor.get("fxgraph_cache_bypass", 0) + autograd.get("autograd_cache_bypass", 0),
        },
    }


def forget() -> None:
    import torch
    from torch._dynamo.utils import compilation_time_metrics, counters

    torch._dynamo.reset()
    counters.clear()
    compilation_time_metrics.clear()


def phases() -> dict[str, float]:
    """Return the seconds of each compile phase, by torch's name for it. Phases nest, so their sum is meaningless."""
    from torch._dynamo.utils import compilation_time_metrics

    sums = {name: sum(seconds) for name, seconds in compilation_time_metrics.items()}
    kept = {name: s for name, s in sums.items() if s >= _SHORTEST}
    return dict(sorted(kept.items(), key=lambda item: -item[1]))


def recompile_reasons() -> list[str]:
    """Return which guard failed, for each compilation that was not a function's first."""
    try:
        from torch._dynamo.utils import get_compilation_metrics
    except ImportError:
        return []
    reasons = [getattr(m, "recompile_reason", None) for m in get_compilation_metrics()]
    return [str(reason).splitlines()[0].strip()[:300] for reason in reasons if reason]


def break_reasons() -> Counter[str]:
    """Return the reasons of graph breaks, each as one line with its explanation, and their counts."""
    from torch._dynamo.utils import counters

    reasons = Counter[str]()
    for text, count in counters["graph_break"].items():
        lines = _lines(text)
        reasons[": ".join([*lines[:1], *_after("Explanation: ", lines)[:1]])[:300]] += count
    return reasons


def _lines(text: object) -> list[str]:
    return [line for line in map(str.strip, str(text).splitlines()) if line]


def _after(label: str, lines: list[str]) -> list[str]:
    return [line.removeprefix(label) for line in lines if line.startswith(label)]


def breaks(function: Callable[..., Any], inputs: tuple[Any, ...], named: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each graph break with its reason and its line in the model. This uses dynamo's `explain`, which resets
    everything, so it must be called last."""
    import torch

    return [_break(reason) for reason in torch._dynamo.explain(function)(*inputs, **named).break_reasons]


def _break(reason: Any) -> dict[str, Any]:
    lines = _lines(reason.reason)
    place = next(reversed(reason.user_stack or []), None)
    return {
        "reason": next(iter(lines), ""),
        "explanation": next(iter(_after("Explanation: ", lines)), ""),
        "hint": next(iter(_after("Hint: ", lines)), ""),
        "where": f"{shown(Path(place.filename))}:{place.lineno}" if place else "",
        "function": place.name if place else "",
        "code": (place.line or "").strip() if place else "",
    }
