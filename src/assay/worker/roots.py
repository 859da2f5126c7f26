"""The processes that fork others: the one that has imported torch, and the zygotes below it."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.worker import channel, scratch
from assay.worker.forking import Forking, ended_how, errors_file
from assay.worker.zygote import ZYGOTE

_SOURCE = str(Path(__file__).parents[2])
_QUIET = {
    "PYTHONUNBUFFERED": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "KMP_BLOCKTIME": "0",
}
"""Workers share the machine: threads that wait must not spin, and inductor must not keep a pool of its own."""


def standard_handles() -> None:
    """Open the standard handles that are closed: a socket that took one of their numbers would be lost in a child."""
    for wanted in (0, 1, 2):
        try:
            os.fstat(wanted)
        except OSError:
            if (handle := os.open(os.devnull, os.O_RDWR)) != wanted:
                os.close(handle)


class Root(Forking):
    """The process that has imported torch alone. Every pool's zygotes are forked from it, and it stays when they go:
    importing torch is most of what a short check costs. It ends with this process."""

    def __init__(self, surroundings: Any) -> None:
        self.surroundings = surroundings
        standard_handles()
        ours, theirs = socket.socketpair()
        errors = errors_file()
        environment = dict(os.environ) | _QUIET
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [_SOURCE, os.environ.get("PYTHONPATH")]))
        # -P: a file called torch.py in the user's folder must not stand in for torch.
        command = [sys.executable, "-P", "-m", "assay.worker.zygote", str(theirs.fileno()), "torch"]
        with theirs:
            self.process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True, cwd=surroundings[1],
            )  # fmt: skip
        super().__init__(self.process.pid, "the process that imports torch", ours, errors)

    @property
    def ours(self) -> bool:
        """A forked process must leave its parent's alone."""
        return bool(self.surroundings[0] == os.getpid())

    @property
    def alive(self) -> bool:
        return not self.gone and not self.failed and self.process.poll() is None

    def how_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(5)
            return ended_how(-code if code < 0 else code << 8)
        return "closed its control"

    def close(self) -> None:
        self._closing = True
        self.process.kill()
        self.process.wait()
        super().close()


_root: Root | None = None
_planting = threading.Lock()


def _surroundings() -> Any:
    """What a new process takes over from this one, but for pytest's note of the test that runs just now."""
    try:
        folder = Path.cwd()
    except OSError:  # it was deleted; torch cannot be imported nowhere
        folder = Path(os.sep)
    return os.getpid(), folder, {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}


def root() -> Root:
    """The one there is, unless it is gone or a new one would find other surroundings."""
    global _root
    with _planting:
        now = _surroundings()
        if _root is None or _root.surroundings != now or not _root.alive:
            uproot()
            _root = Root(now)
        return _root


@atexit.register
def uproot() -> None:
    global _root
    if _root is not None and _root.ours:
        _root.close()
    _root = None


class Zygote(Forking):
    """A process that has imported what one language needs in one mode."""

    def __init__(self, environment: Mapping[str, str], preload: tuple[str, ...]) -> None:
        scratch.sweep()
        self._root = root()
        ours, theirs = socket.socketpair()
        errors = errors_file()
        try:
            with theirs:
                pid = self._root.fork(ZYGOTE, theirs.fileno(), errors)
            # A worker killed while inductor writes its cache would leave half a library there for every later run.
            # Made this late, the folder has somebody to remove it whatever happens to this process.
            self._scratch = scratch.Scratch()
            folder = str(self._scratch.path)
            told = {"environment": dict(environment) | {"TORCHINDUCTOR_CACHE_DIR": folder}}
            with contextlib.suppress(OSError):  # one that is gone already is noticed when it is asked to fork
                channel.send(ours, told | {"preload": preload, "scratch": folder})
        except BaseException:
            ours.close()
            os.close(errors)
            raise
        packages = [name for name in preload if not name.startswith("assay.")]
        super().__init__(pid, f"the process that imports {' and '.join(packages)}", ours, errors)

    def how_ended(self) -> str:
        status = self._root.status(self.pid)
        if status is None:
            return "was killed together with the one above it" if self._root.gone else "closed its control"
        return ended_how(status)

    def close(self) -> None:
        self._closing = True
        self.kill()
        self._root.status(self.pid)
        super().close()
        self._scratch.close()
