"""Runs command-line tools, with the same errors for any that is missing, takes too long or fails."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from assay import host
from assay.errors import AssayError

_NVCC = "pip install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88"
INSTALL = {
    "nvdisasm": "pip install nvidia-cuda-nvdisasm",
    "cuobjdump": "pip install nvidia-cuda-cuobjdump",
    "ptxas": "pip install nvidia-cuda-nvcc==13.0.88",
    **dict.fromkeys(("nvcc", "cudafe++", "cicc", "fatbinary", "nvlink"), _NVCC),
    **dict.fromkeys(("gcc", "g++", "cc", "c++"), "install a host compiler: gcc"),
}
"""The command that installs each tool."""
_LONG = 3600.0
"""Seconds after which any tool is killed."""
_LOOK_EVERY = 0.5


class Missing(AssayError):
    """The tool is not installed."""


class TooLong(AssayError):
    """The tool took too long and was killed, with all the processes it started."""


@dataclass(frozen=True)
class Ran:
    """The result of a tool that ended by itself."""

    code: int
    stdout: str
    stderr: str

    @property
    def complaint(self) -> str:
        """The tool's error message."""
        return self.stderr.strip() or self.stdout.strip() or f"ended with status {self.code} and said nothing"


def path(name: str) -> str:
    """Return the path of a CUDA tool. Raise Missing, with the command that installs it."""
    executable = host.tool(name)
    if executable is None:
        raise _missing(name)
    return str(executable)


def _missing(name: str) -> Missing:
    return Missing(f"{name} is not here", fix=INSTALL.get(Path(name).name, f"install {Path(name).name}"))


def call(
    command: Sequence[str | Path],
    *,
    folder: Path | str | None = None,
    environment: Mapping[str, str] | None = None,
    limit: float = _LONG,
    on: str = "",
    fix: str = "",
    stop: threading.Event | None = None,
) -> Ran:
    """Run a command to its end. Raise Missing if it is not installed, and TooLong after `limit` seconds or once `stop`
    is set; that error says what the tool was working `on` and how to `fix` it."""
    try:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            errors="replace",
            start_new_session=True,
        )
    except FileNotFoundError:
        raise _missing(str(command[0])) from None
    deadline = time.monotonic() + limit
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                out, err = process.communicate(timeout=min(_LOOK_EVERY, max(0.0, deadline - time.monotonic())))
                return Ran(process.returncode, out, err)
            if time.monotonic() > deadline or (stop is not None and stop.is_set()):
                what = f"{Path(command[0]).name} was still at work after {limit:g} s"
                raise TooLong(what + f" on {on}" * bool(on), fix=fix)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@cache
def version(command: str) -> str:
    """Return the version that a tool reports: `13.0.88`; `?` if it prints nothing that looks like one."""
    said = call([command, "--version"], limit=20).stdout
    words = [w.strip(",") for w in said.split() if w[:1] in "V0123456789" and any(c.isdigit() for c in w) and "." in w]
    return words[-1].lstrip("V") if words else "?"
