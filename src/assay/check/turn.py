"""A lock for all threads and all judging processes of a run."""

import fcntl
import os
import threading


class Turn:
    """A lock that threads and processes forked later share. The system releases it if its process dies, and unlike a
    semaphore it needs no shared memory folder."""

    def __init__(self) -> None:
        self._threads = threading.Lock()
        self._file = os.memfd_create("assay-turn", os.MFD_CLOEXEC)

    def __enter__(self) -> None:
        self._threads.acquire()
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)
        self._threads.release()
