"""A site of a variant, as its process tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Called:
    """A kernel at one place, however often it is called there in one pass."""

    site: str
    """As the swap's report has it; of several pairs in one module, all of them."""
    path: str
    """The innermost module in whose forward it runs."""
    op: str
    """What the site computes: `layernorm+gelu` for a pair."""
    form: str
    kernel: str
    operator: str
    """`assay::gelu__triton`."""
    workloads: Mapping[str, int]
    """Workload → calls in one pass."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def called(told: Mapping[str, Any]) -> Called:
    return Called(**told)
