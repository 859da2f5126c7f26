"""Finds a masked load in a Triton kernel that does not say what its masked lanes hold. Triton leaves them undefined;
its interpreter fills them with NaN here, and on a GPU they often happen to be zero."""

from __future__ import annotations

import ast
from pathlib import Path

from assay import provenance
from assay.catalog.source import parse
from assay.errors import AssayError

_ARGUMENTS = ("pointer", "mask", "other")
"""Of `tl.load`, in their order."""


def advice(file: Path | None) -> str:
    """Return what to do about the first such load of a file; empty if there is none."""
    if file is None or file.suffix != ".py":
        return ""
    try:
        tree = parse(file)
    except AssayError:
        return ""
    loads = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _undefined(node))
    line = min((load.lineno for load in loads), default=0)
    if not line:
        return ""
    where = f"{provenance.shown(file)}:{line}"
    return f"\n  → if masked lanes take part in the result, say what they hold: other= in the load at {where}"


def _undefined(call: ast.Call) -> bool:
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr == "load" and isinstance(function.value, ast.Name)):
        return False
    given = {*_ARGUMENTS[: len(call.args)], *(keyword.arg for keyword in call.keywords)}
    return "mask" in given and "other" not in given
