"""The processes that fork others: the one that has imported torch, and the zygotes below it.

Both outlive a pool, for the next one: importing is most of what a short check costs."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.worker import channel, scratch
from assay.worker.forking import Forking, ended_how, errors_file
from assay.worker.fresh import start
from assay.worker.zygote import ZYGOTE

_ALONE = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""Workers share the machine: inductor must not keep a pool of its own."""
_HARMLESS = ("ASSAY_", "COLUMNS", "LINES", "PYTEST_CURRENT_TEST")
"""Variables that no import reads. They are passed to each worker, so that a change needs no new zygote."""


def standard_handles() -> None:
    """Open closed standard file descriptors: a socket that took one of their numbers would be lost in a child."""
    for wanted in (0, 1, 2):
        try:
            os.fstat(wanted)
        except OSError:
            if (handle := os.open(os.devnull, os.O_RDWR)) != wanted:
                os.close(handle)


class Root(Forking):
    """The process that has imported torch alone. All zygotes are forked from it. It ends with this process."""

    def __init__(self, surroundings: Any) -> None:
        self.surroundings = surroundings
        standard_handles()
        control, other_end = socket.socketpair()
        errors = errors_file()
        with other_end:
            self.process = start(
                "assay.worker.zygote",
                str(other_end.fileno()),
                "torch",
                inherited=surroundings[1],
                environment=_ALONE,
                pass_fds=[other_end.fileno()],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=os.sep,
            )
        super().__init__(self.process.pid, "the process that imports torch", control, errors)

    @property
    def ours(self) -> bool:
        """Whether this process started it: a forked process must leave its parent's root alone."""
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
    """Return what a new process inherits from this one and an import may read."""
    return os.getpid(), {k: v for k, v in os.environ.items() if not k.startswith(_HARMLESS)}


def harmless() -> dict[str, str]:
    """Return the variables that a worker gets as they are now, whenever its zygote was started."""
    return {k: v for k, v in os.environ.items() if k.startswith(_HARMLESS)}


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return os.sep


def root() -> Root:
    """Return the current root; a new one if it has ended, belongs to the process this one was forked from, or has
    another environment."""
    global _root
    with _planting:
        now = _surroundings()
        if _root is None or _root.surroundings != now or not _root.alive:
            close_root()
            _root = Root(now)
        return _root


def close_root() -> None:
    global _root
    if _root is not None and _root.ours:
        _root.close()
    _root = None


@atexit.register
def _end() -> None:
    for known in _zygotes.values():
        if known.above.ours:
            known.close()
    close_root()


class Zygote(Forking):
    """A process that has imported what one language needs in one mode."""

    def __init__(self, above: Root, folder: str, environment: Mapping[str, str], preload: tuple[str, ...]) -> None:
        scratch.sweep()
        self.above = above
        self._users, self._retired = 0, False
        control, other_end = socket.socketpair()
        errors = errors_file()
        try:
            with other_end:
                pid = above.fork(ZYGOTE, other_end.fileno(), errors)
            # The zygote has a folder of its own: a worker killed while inductor writes its cache would leave half a
            # library there for every later run. It is made this late because now some process removes it, whatever
            # happens to this one.
            self._scratch = scratch.Scratch()
            caches = str(self._scratch.path)
            request = {
                "environment": dict(environment) | {scratch.VARIABLE: caches},
                "folder": folder,
                "preload": preload,
                "scratch": caches,
            }
            with contextlib.suppress(OSError):  # a zygote that has ended is noticed when it is asked to fork
                channel.send(control, request)
        except BaseException:
            control.close()
            os.close(errors)
            raise
        packages = [name for name in preload if not name.startswith("assay.")]
        super().__init__(pid, f"the process that imports {' and '.join(packages)}", control, errors)

    def borrow(self) -> None:
        self._users += 1

    def give_back(self) -> None:
        """Count one user less. The last user of a retired zygote closes it."""
        with _sharing:
            self._users -= 1
            last = self._retired and not self._users
        if last:
            self.close()

    def retire(self) -> bool:
        """Take no more users. Return True if no user is left."""
        self._retired = True
        return not self._users

    def how_ended(self) -> str:
        status = self.above.status(self.pid)
        if status is None:
            return "was killed together with the one above it" if self.above.gone else "closed its control"
        return ended_how(status)

    def close(self) -> None:
        self._closing = True
        self.kill()
        self.above.status(self.pid)
        super().close()
        self._scratch.close()


_zygotes: dict[Any, Zygote] = {}
"""Zygotes by the folder they work in, the variables of their mode, and what they have imported."""
_sharing = threading.RLock()


def zygote(environment: Mapping[str, str], preload: tuple[str, ...]) -> Zygote:
    """Return a zygote with these imports, counted for one more user; a new one if there is none or it was lost. Zygotes
    of another folder take no further users, so that they do not accumulate."""
    folder = _folder()
    key = (folder, tuple(sorted(environment.items())), preload)
    with _sharing:
        above = root()
        for old, known in list(_zygotes.items()):
            if old[0] != folder or known.above is not above or known.gone or known.failed:
                del _zygotes[old]
                if known.above.ours and known.retire():
                    known.close()
        shared = _zygotes.get(key)
        if shared is None:
            shared = _zygotes[key] = Zygote(above, folder, environment, preload)
        shared.borrow()
        return shared
