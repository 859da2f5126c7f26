"""Where a model runs: as asked, else on the GPU where there is one."""

from __future__ import annotations

from assay import host
from assay.errors import UsageError


def device(asked: str) -> str:
    """`cuda` or `cpu`; a UsageError for what is neither, and for a GPU that is not here."""
    if asked not in ("", "cuda", "cpu"):
        raise UsageError(f"no device called '{asked}'", fix="--device cuda or cpu")
    if asked == "cuda" and not host.runs_on_gpu():
        raise UsageError("no CUDA device here that torch can use", fix="--device cpu")
    return asked or ("cuda" if host.runs_on_gpu() else "cpu")
