"""Nodes of a Ray cluster as processes of this machine, each with one core."""

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
# A lost node is noticed in seconds; by default it takes Ray up to half a minute.
ALERT = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 10_000,
    "health_check_failure_threshold": 4,
}


class Node:
    """A node of the cluster that `head` is of, or the head of a new one. `environment`: what a client needs."""

    def __init__(self, head=None):
        address = head.address if head else None
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.environment = head.environment if head else token
        self.folder = Path(tempfile.mkdtemp(prefix="ray"))  # short: paths of sockets are limited
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "support")])
        words = [f"--address={address}"] if head else of_head(self.folder)
        words += ["--block", "--num-cpus=1", "--num-gpus=0", f"--object-store-memory={80 << 20}"]
        words += ["--include-log-monitor=false", "--disable-usage-stats"]
        self._printed = self.folder / "printed"
        with self._printed.open("w") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", *words],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=os.environ | self.environment | {"PYTHONPATH": path},
                start_new_session=True,
            )
        until = time.monotonic() + 180
        while "Ray runtime started" not in (printed := self._printed.read_text()) or (
            not address and "--address='" not in printed
        ):
            assert self.alive() and time.monotonic() < until, printed
            time.sleep(0.05)
        self.address = address or re.search(r"--address='([^']+)'", printed)[1]

    def alive(self):
        return self._process.poll() is None

    def processes(self):
        """All that run on it, trials too."""
        return psutil.Process(self._process.pid).children(recursive=True)

    def trials(self):
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                if "search_child" in process.cmdline():
                    found.append(process.pid)
        return found

    def kill(self):
        """As if its power were cut: no process on it says goodbye."""
        if not self.alive():
            return
        for process in [psutil.Process(self._process.pid), *self.processes()]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def of_head(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = taken.getsockname()[1]
    return [
        "--head",
        "--port=0",
        f"--ray-client-server-port={client}",
        "--include-dashboard=false",
        f"--temp-dir={folder}",
        f"--system-config={json.dumps(ALERT)}",
    ]
