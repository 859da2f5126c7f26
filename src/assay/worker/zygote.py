"""A process that has imported the heavy packages once and forks a fresh worker whenever asked.

A worker is thus ready in milliseconds, and no kernel ever shares a process with another."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from importlib import import_module

from assay.worker import channel


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    for name in sys.argv[2:]:
        import_module(name)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    alive: set[int] = set()
    while True:
        ready, _, _ = select.select([control.fileno(), wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            _report_exits(control, alive)
        if control.fileno() in ready:
            message, handles, _, _ = socket.recv_fds(control, 1, 3)
            if not message:
                break
            pid = os.fork()
            if pid == 0:
                control.close()
                os.close(wake_read)
                signal.set_wakeup_fd(-1)
                os.close(wake_write)
                _become_worker(*handles)
            alive.add(pid)
            for handle in handles:
                os.close(handle)
            channel.send(control, {"started": pid})
    for pid in alive:
        _kill(pid)


def _report_exits(control: socket.socket, alive: set[int]) -> None:
    while alive:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        alive.discard(pid)
        channel.send(control, {"exited": pid, "status": status})


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _become_worker(connection: int, output: int, arena: int) -> None:
    """Never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    status = 1
    try:
        from assay.worker.serve import serve

        serve(socket.socket(fileno=connection), channel.Arena(arena))
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
