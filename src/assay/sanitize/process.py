"""One kernel on one workload under compute-sanitizer, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import host
from assay.backends import Level, here
from assay.errors import UsageError
from assay.kernel import Kernel
from assay.sanitize.text import Problem, parse
from assay.workload import Workload

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_SOURCE = str(Path(__file__).parents[2])
_FOUND = 86
"""Exit code that says the kernel ran and errors were found."""


@dataclass(frozen=True)
class Report:
    tool: str
    problems: tuple[Problem, ...]
    trouble: str = ""
    """Why there is no verdict: the tool or the kernel did not come to an end."""
    output: str = ""
    """The end of what kernel and tool printed, where there is trouble."""

    @property
    def clean(self) -> bool:
        return not self.problems and not self.trouble

    def __str__(self) -> str:
        return self.trouble or "; ".join(map(str, self.problems)) or f"{self.tool}: nothing found"


def why_not(kernel: Kernel | None = None) -> tuple[str, str]:
    """Why nothing can be sanitized here, and what would help; empty where it can."""
    if not host.runs_on_gpu():
        return "compute-sanitizer needs a GPU", "run it on a machine with an NVIDIA GPU"
    if host.tool("compute-sanitizer") is None:
        return "compute-sanitizer is not installed", "install the CUDA toolkit (package cuda-sanitizer)"
    if kernel is not None:
        found = here(kernel)
        if found.level is not Level.RUN or found.device != "cuda":
            return (
                found.reason or f"{kernel.address.backend} kernels run on the CPU",
                found.fix or "sanitize a GPU kernel",
            )
    return "", ""


def command(tool: str, target: list[str], log: str) -> list[str]:
    """The command line. API errors are left out: PyTorch probes for symbols and expects to miss some."""
    if tool not in TOOLS:
        raise UsageError(f"compute-sanitizer has no tool called '{tool}'", fix=f"one of: {', '.join(TOOLS)}")
    options = {
        "tool": tool,
        "target-processes": "application-only",
        "log-file": log,
        "show-backtrace": "no",
        "launch-timeout": "60",
        "error-exitcode": str(_FOUND),
    }
    if tool == "memcheck":
        options |= {"padding": "4096", "report-api-errors": "no"}
    given = [word for name, value in options.items() for word in (f"--{name}", value)]
    return [str(host.tool("compute-sanitizer")), *given, *target]


def target_command(kernel: Kernel, workload: Workload, parameters: dict[str, Any] | None = None) -> list[str]:
    """The process that is watched: it runs the kernel once, on plain tensors."""
    op = workload.op
    request = {
        "kernel": kernel.to_dict(),
        "op": op.name,
        "op_file": op.source,
        "workload": str(workload),
        "settings": parameters or {},
    }
    return [sys.executable, "-P", "-m", "assay.sanitize.target", json.dumps(request)]


def environment() -> dict[str, str]:
    """Without PyTorch's cache every tensor is an allocation of its own, whose end the tool knows."""
    path = os.pathsep.join(filter(None, [_SOURCE, os.environ.get("PYTHONPATH")]))
    return dict(os.environ) | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "PYTHONPATH": path}


def run(
    kernel: Kernel,
    workload: Workload,
    tool: str = "memcheck",
    *,
    parameters: dict[str, Any] | None = None,
    seconds: float = 180.0,
) -> Report:
    """Run `kernel` once under one tool and say what it found."""
    reason, fix = why_not(kernel)
    if reason:
        raise UsageError(reason, fix=fix)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        line = command(tool, target_command(kernel, workload, parameters), str(log))
        code, printed = _watch(line, seconds)
        return read(tool, code, log.read_text(errors="replace") if log.exists() else "", printed, seconds)


def read(tool: str, code: int | None, log: str, printed: str, seconds: float) -> Report:
    """What a run left: its exit code (None: out of time), the tool's log, what the kernel printed."""
    found = parse(log)
    trouble = ""
    if code is None:
        trouble = f"not done within {seconds:g} s"
    elif not found.problems:
        if found.trouble:
            trouble = found.trouble
        elif code == _FOUND or found.total:
            trouble = "compute-sanitizer reported errors of a kind that is not known here"
        elif code != 0:
            trouble = f"the kernel's process ended with exit code {code}"
        elif found.total is None:
            trouble = "compute-sanitizer did not finish"
    return Report(tool, found.problems, trouble, f"{printed}\n{log}".strip()[-4000:] if trouble else "")


def _watch(line: list[str], seconds: float) -> tuple[int | None, str]:
    """Exit code (None: out of time) and the end of what was printed."""
    process = subprocess.Popen(
        line,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
        return process.returncode, printed[-4000:]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0][-4000:]
