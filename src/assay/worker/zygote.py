"""A process that has imported the heavy packages once and forks a fresh one whenever asked.

The first of them has imported torch alone. It forks a zygote for each mode and language, which imports the rest; a
zygote forks workers. A worker is thus ready in milliseconds, torch is imported once however many languages there are,
and no kernel ever shares a process with another.

None of them outlives the parent: each ends when the other side of its control socket is gone, a worker also when its
zygote dies. Orphans of a worker become children of the process above, which ends them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import NoReturn

from assay.worker import channel, lifeline

WORKER, ZYGOTE = b"w", b"z"
"""What may be asked for. The file descriptors come with it: for a worker its connection, output and arena; for a zygote
its own control and the file for its errors."""
_HANDLES = {WORKER: 3, ZYGOTE: 2}
_READ_AT_IMPORT = {"TRITON_INTERPRET": "triton", "NUMBA_ENABLE_CUDASIM": "numba"}
"""A mode's variable, and the package that reads it at import."""


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    _attend(control, sys.argv[2:])


def _attend(control: socket.socket, preload: Iterable[str], scratch: str = "") -> None:
    """Import, then fork what is asked for until the other side is gone; then remove the folder `scratch`."""
    try:
        with _ending_with(control, scratch):
            for name in preload:
                import_module(name)
    except BaseException as error:
        from assay.worker.failure import words

        with contextlib.suppress(OSError):
            channel.send(control, {"failed": f"{type(error).__name__}: {words(error)}"[:2000]})
        raise SystemExit(1) from None
    lifeline.adopt_orphans()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    alive: dict[int, bytes] = {}
    try:
        channel.send(control, {"ready": True})
        while True:
            ready, _, _ = select.select([control.fileno(), wake_read], [], [])
            if wake_read in ready:
                os.read(wake_read, 4096)
                _report_exits(control, alive)
            if control.fileno() in ready:
                wanted, handles, _, _ = socket.recv_fds(control, 1, 3)
                if not wanted:
                    break
                channel.send(control, _fork(control, wanted, handles, (wake_read, wake_write), alive))
    except OSError:
        pass  # the other side is gone
    for pid, what in alive.items():
        if what == WORKER:  # a zygote ends by itself, once it has ended its workers
            lifeline.kill_group(pid)
    lifeline.end_orphans({pid for pid, what in alive.items() if what == ZYGOTE})
    lifeline.remove(scratch)


def _fork(
    control: socket.socket, wanted: bytes, handles: list[int], wake: tuple[int, int], alive: dict[int, bytes]
) -> dict[str, object]:
    """Fork and return the reply for the other side. The child never returns."""
    try:
        if len(handles) < _HANDLES[wanted]:
            return {"refused": "too many open files (see `ulimit -n`)"}
        above = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            return {"refused": f"fork: {error.strerror} (see `ulimit -u`)"}
        if pid == 0:
            control.close()
            signal.set_wakeup_fd(-1)
            for handle in wake:
                os.close(handle)
            for handle in handles:
                os.set_inheritable(handle, False)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become_zygote(*handles) if wanted == ZYGOTE else _become_worker(above, *handles)
        alive[pid] = wanted
        return {"started": pid}
    finally:
        for handle in handles:
            os.close(handle)


@contextlib.contextmanager
def _ending_with(control: socket.socket, scratch: str) -> Iterator[None]:
    """End this process as soon as the other side is gone, while the context is open: an import may take minutes. The
    thread that watches ends with the context, because a process with threads does not fork well."""
    done_read, done_write = os.pipe()

    def watch() -> None:
        poll = select.poll()
        poll.register(control.fileno(), select.POLLHUP)
        poll.register(done_read, select.POLLIN)
        if not any(handle == done_read for handle, _ in poll.poll()):
            lifeline.remove(scratch)
            os._exit(1)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.write(done_write, b".")
        thread.join()
        os.close(done_read)
        os.close(done_write)


def _report_exits(control: socket.socket, alive: dict[int, bytes]) -> None:
    """Report every process that has ended, once its orphans have ended too."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            break
        if pid in alive:  # others are orphans of a worker
            ended[pid] = status
            del alive[pid]
    if ended:
        lifeline.end_orphans(set(alive))
    for pid, status in ended.items():
        channel.send(control, {"exited": pid, "status": status})


def _become_zygote(handle: int, errors: int) -> NoReturn:
    """Become a zygote. Its first message says what to import, and in which environment."""
    os.setpgid(0, 0)
    os.dup2(errors, 2)
    os.close(errors)
    control = socket.socket(fileno=handle)

    def live() -> None:
        if (order := channel.receive(control)) is not None:
            environment = order["environment"]
            late = [m for variable, m in _READ_AT_IMPORT.items() if variable in environment and m in sys.modules]
            assert not late, f"{late[0]} was imported before its mode was set"
            os.environ.update(environment)
            with contextlib.suppress(OSError):  # it was deleted meanwhile
                os.chdir(order["folder"])
            _attend(control, order["preload"], order["scratch"])

    _end_after(live)


def _become_worker(above: int, connection: int, output: int, arena: int) -> NoReturn:
    lifeline.end_with_parent(above)
    os.setpgid(0, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    def live() -> None:
        from assay.worker.serve import serve

        asked = socket.socket(fileno=connection)
        if (variables := channel.receive(asked)) is not None:
            os.environ.update(variables)
            serve(asked, channel.Arena(arena))

    _end_after(live)


def _end_after(live: Callable[[], None]) -> NoReturn:
    """Run `live` and end this process, whatever happens: a forked process must not go on as its parent."""
    status = 1
    try:
        live()
        status = 0
    except SystemExit as wanted:
        status = wanted.code if isinstance(wanted.code, int) else 1
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
