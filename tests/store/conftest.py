"""A PostgreSQL server, and stores in it and in SQLite files."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from assay.store import open_store
from storing import fresh


def binaries():
    """Where Debian, or whoever, keeps PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: float(p.parts[-3]))
    if found:
        return found[-1].parent
    told = shutil.which("initdb")
    return Path(told).parent if told else None


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL of our own, on a free port, with a password."""
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="assay-postgres-"))
    as_whom = {}
    if os.geteuid() == 0:  # the server refuses to be root
        names = [u.pw_name for u in pwd.getpwall()]
        user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_whom = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    (folder / "password").write_text("open:sesame")
    (folder / "password").chmod(0o644)
    made = subprocess.run(
        [
            programs / "initdb",
            "-D",
            folder / "data",
            "-U",
            "assay",
            "--auth=scram-sha-256",
            f"--pwfile={folder / 'password'}",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        **as_whom,
    )
    assert made.returncode == 0, made.stderr
    log = (folder / "log").open("w")
    for _ in range(3):  # another process may take the port between our look and the server's
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [programs / "postgres", "-D", folder / "data", "-h", "127.0.0.1", "-p", str(port), "-k", folder]
        command += ["-c", "fsync=off"]  # nobody pulls the plug on this one
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **as_whom)
        ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        while process.poll() is None and subprocess.run(ready).returncode:
            time.sleep(0.05)
        if process.poll() is None:
            break
    assert process.poll() is None, (folder / "log").read_text()
    yield f"postgresql://assay:open%3Asesame@127.0.0.1:{port}/postgres"
    process.send_signal(signal.SIGQUIT)  # at once: all of it is thrown away
    process.wait(timeout=120)
    log.close()
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    """A place with nothing in it."""
    return fresh(request, request.param, tmp_path)


@pytest.fixture
def store(where):
    with open_store(where) as opened:
        yield opened
