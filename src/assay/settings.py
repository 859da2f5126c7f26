"""The settings of a verb as keyword arguments of its Python function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeVar

from assay.errors import UsageError

Options = TypeVar("Options")


def settings_of(kind: type[Options], settings: Mapping[str, Any]) -> Options:
    """Return the options of a verb. Raise UsageError for an unknown setting, and suggest the nearest ones."""
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    for name in settings:
        if name not in known:
            fix = f"{did_you_mean(name, known)}it takes {', '.join(known)}"
            raise UsageError(f"there is no setting called '{name}'", fix=fix)
    return kind(**settings)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that suggests similar names; empty if there are none."""
    near = get_close_matches(name, list(known), n=3)
    return f"did you mean {' or '.join(dict.fromkeys(near))}? " if near else ""
