"""`assay run`: all that fits, in one go. Today that is check."""

from __future__ import annotations

from assay.cli import check as checking


def run(
    what: checking.What = None,
    op: checking.OpName = None,
    dtype: checking.DTypes = "",
    target: checking.TargetName = "",
    timeout: checking.Timeout = 60.0,
    jobs: checking.Jobs = None,
    workloads: checking.Count = None,
    json: checking.AsJson = False,
    out: checking.Out = None,
    strict: checking.Strict = False,
) -> None:
    """Take kernels from source to verdict: everything this machine can do with them, in one go."""
    checking.check(
        what,
        not what,
        op,
        dtype,
        "",
        workloads,
        "",
        target,
        timeout,
        jobs,
        0,
        None,
        json,
        out,
        strict,
    )
