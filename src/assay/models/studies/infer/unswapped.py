"""Why a swap put no kernel to work in a model, and what could be swapped instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.models.swap.report import NO_RULE, Site, State
from assay.models.swap.rules import FUSIONS


def why(sites: Iterable[Site], rules: Mapping[str, str]) -> str:
    """Return `nothing was swapped: gelu at act1, act2: it works in place`, from the sites of a swap without a call of
    any kernel."""
    reasons: dict[tuple[str, str], list[str]] = {}
    named = [site for site in sites if site.why != NO_RULE]
    for site in named:
        uncalled = site.state is State.REPLACED
        reasons.setdefault((site.op, "it was not called" if uncalled else site.why), []).append(site.path)
    texts = [f"{op} at {', '.join(p or '(the model)' for p in paths)}: {text}" for (op, text), paths in reasons.items()]
    met = {site.rule for site in named}
    texts += [f"rule '{key}': the model made no such call" for key in rules if key not in met]
    return "nothing was swapped: " + "; ".join(texts)


def instead(ops: Iterable[str]) -> str:
    """Return what can be swapped. `ops`: the ops that the model calls."""
    known = [op for op in ops if op not in FUSIONS]
    if not known:
        return "the model calls no op that Assay has a kernel for"
    return f"the model calls {', '.join(known)}: name a kernel for one of them (`assay list {known[0]}`)"
