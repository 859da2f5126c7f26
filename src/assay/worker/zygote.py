"""A process that has imported the heavy packages once and forks a fresh one whenever asked.

The first of them has imported torch alone. It forks a zygote for each mode and language, which imports the rest; a
zygote forks workers. A worker is thus ready in milliseconds, torch is imported once however many languages there are,
and no kernel ever shares a process with another."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import NoReturn

from assay.worker import channel

WORKER, ZYGOTE = b"w", b"z"
"""What may be asked for, and with it the handles: of a worker its connection, output and arena; of a zygote its own
control and where its errors go."""
_READ_AT_IMPORT = {"TRITON_INTERPRET": "triton", "NUMBA_ENABLE_CUDASIM": "numba"}
"""A mode's variable, and the package that looks at it once."""


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    _attend(control, sys.argv[2:])


def _attend(control: socket.socket, preload: Iterable[str]) -> None:
    """Import, then fork what is asked for until the other side is gone."""
    for name in preload:
        import_module(name)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    alive: dict[int, bytes] = {}
    while True:
        ready, _, _ = select.select([control.fileno(), wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            _report_exits(control, alive)
        if control.fileno() in ready:
            wanted, handles, _, _ = socket.recv_fds(control, 1, 3)
            if not wanted:
                break
            pid = os.fork()
            if pid == 0:
                control.close()
                os.close(wake_read)
                signal.set_wakeup_fd(-1)
                os.close(wake_write)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _become_zygote(*handles) if wanted == ZYGOTE else _become_worker(*handles)
            alive[pid] = wanted
            for handle in handles:
                os.close(handle)
            channel.send(control, {"started": pid})
    for pid, what in alive.items():
        if what == WORKER:  # a zygote ends by itself, once it has ended its workers
            _kill(pid)


def _report_exits(control: socket.socket, alive: dict[int, bytes]) -> None:
    while alive:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        alive.pop(pid, None)
        channel.send(control, {"exited": pid, "status": status})


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _become_zygote(handle: int, errors: int) -> NoReturn:
    """Its first message says what to import, and in which environment."""
    os.setpgid(0, 0)
    os.dup2(errors, 2)
    os.close(errors)
    control = socket.socket(fileno=handle)

    def live() -> None:
        if (told := channel.receive(control)) is not None:
            environment = told["environment"]
            late = [m for variable, m in _READ_AT_IMPORT.items() if variable in environment and m in sys.modules]
            assert not late, f"{late[0]} was imported before its mode was set"
            os.environ.update(environment)
            _attend(control, told["preload"])

    _end_after(live)


def _become_worker(connection: int, output: int, arena: int) -> NoReturn:
    os.setpgid(0, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)

    def live() -> None:
        from assay.worker.serve import serve

        serve(socket.socket(fileno=connection), channel.Arena(arena))

    _end_after(live)


def _end_after(live: Callable[[], None]) -> NoReturn:
    """A forked process ends with what it was forked for, whatever happens: it must not go on as its parent."""
    status = 1
    try:
        live()
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


if __name__ == "__main__":
    main()
