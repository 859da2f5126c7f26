"""Runs one kernel on one workload under compute-sanitizer, in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import host
from assay.backends import Level, here
from assay.errors import UsageError
from assay.kernel import Kernel
from assay.sanitize import target
from assay.sanitize.text import Problem, parse
from assay.worker.fresh import run_once
from assay.workload import Workload

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
"""Without PyTorch's cache every tensor is a separate allocation, and the tool knows where it ends."""
_ERRORS = 86
"""Exit code if the kernel ran and the tool reported errors."""


@dataclass(frozen=True)
class Report:
    tool: str
    problems: tuple[Problem, ...]
    trouble: str = ""
    """Why there is no verdict: the tool or the kernel did not finish."""
    output: str = ""
    """The end of the output of kernel and tool, if there is trouble."""

    @property
    def clean(self) -> bool:
        return not self.problems and not self.trouble

    def __str__(self) -> str:
        return self.trouble or "; ".join(map(str, self.problems)) or f"{self.tool}: nothing found"


def why_not(kernel: Kernel | None = None) -> tuple[str, str]:
    """Return why nothing can be sanitized here and how to fix that; both empty if it can."""
    if not host.runs_on_gpu():
        return "compute-sanitizer needs a GPU", "run it on a machine with an NVIDIA GPU"
    if host.tool("compute-sanitizer") is None:
        return "compute-sanitizer is not installed", "install the CUDA toolkit (package cuda-sanitizer)"
    if kernel is not None:
        availability = here(kernel)
        if availability.level is not Level.RUN or availability.device != "cuda":
            return (
                availability.reason or f"{kernel.address.backend} kernels run on the CPU",
                availability.fix or "sanitize a GPU kernel",
            )
    return "", ""


def command(tool: str, log: str) -> list[str]:
    """Return the tool's command line, without the command that it runs. API errors are not reported: PyTorch looks up
    symbols that may not exist."""
    if tool not in TOOLS:
        raise UsageError(f"compute-sanitizer has no tool called '{tool}'", fix=f"one of: {', '.join(TOOLS)}")
    options = {
        "tool": tool,
        "target-processes": "application-only",
        "log-file": log,
        "show-backtrace": "no",
        "launch-timeout": "60",
        "error-exitcode": str(_ERRORS),
    }
    if tool == "memcheck":
        options |= {"padding": "4096", "report-api-errors": "no"}
    given = [word for name, value in options.items() for word in (f"--{name}", value)]
    return [str(host.tool("compute-sanitizer")), *given]


def run(
    kernel: Kernel,
    workload: Workload,
    tool: str = "memcheck",
    *,
    parameters: dict[str, Any] | None = None,
    seconds: float = 180.0,
    stopped: Callable[[], bool] = lambda: False,
) -> Report:
    """Run `kernel` once under one tool and return its report. `stopped` ends it early."""
    reason, fix = why_not(kernel)
    if reason:
        raise UsageError(reason, fix=fix)
    request = target.request(kernel, workload, parameters or {})
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        code, printed = run_once(request, seconds, _ENVIRONMENT, command(tool, str(log)), stopped)
        return read(tool, code, log.read_text(errors="replace") if log.exists() else "", printed, seconds)


def read(tool: str, code: int | None, log: str, printed: str, seconds: float) -> Report:
    """Return the report of a run from its exit code (None: out of time), the tool's log and the kernel's output."""
    parsed = parse(log)
    trouble = ""
    if code is None:
        trouble = f"not done within {seconds:g} s"
    elif not parsed.problems:
        if parsed.trouble:
            trouble = parsed.trouble
        elif code == _ERRORS or parsed.total:
            trouble = "compute-sanitizer reported errors of a kind that is not known here"
        elif code != 0:
            trouble = f"the kernel's process ended with exit code {code}"
        elif parsed.total is None:
            trouble = "compute-sanitizer did not finish"
    return Report(tool, parsed.problems, trouble, f"{printed}\n{log}".strip()[-4000:] if trouble else "")
