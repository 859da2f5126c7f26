"""GPU probes from the parent's side: a child process runs them; when it dies, another goes on with the rest."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIMIT = 180.0
"""Seconds one probe may take, building included."""


Outcome = tuple[str, dict[str, Any]]


def outcomes(keys: list[str], limit: float = LIMIT, command: list[str] | None = None) -> Iterator[Outcome]:
    """(key, outcome) of each probe as it is finished; ("", facts) whenever a child has opened the device."""
    waiting = list(keys)
    while waiting:
        current, opened = "", False
        for message in _child(command or [sys.executable, "-m", "assay.machine.child"], waiting, limit):
            if "facts" in message:
                opened = True
                yield "", message
            elif "start" in message:
                current = message["start"]
            elif "done" in message:
                waiting.remove(message["done"])
                current = ""
                yield message["done"], message
                if message.get("lost"):
                    break
            else:
                # The child is gone: what it was at is to blame; if it could not even begin, the others cannot either.
                for key in [current or waiting[0]] if opened else list(waiting):
                    waiting.remove(key)
                    yield key, {"ok": False, "why": message["gone"], "proof": {}, "artifacts": []}


def _child(command: list[str], keys: list[str], limit: float) -> Iterator[dict[str, Any]]:
    """Messages of one child; a last one, {"gone": why}, if it ended early or hung."""
    source = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*command, *keys], stdout=subprocess.PIPE, stderr=errors, env=os.environ | {"PYTHONPATH": path}
        )
        assert process.stdout is not None
        left, buffer, deadline = len(keys), b"", time.monotonic() + limit
        try:
            while left:
                ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
                piece = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
                if not piece:
                    why = _end(process) if ready else f"it took more than {limit:g} s"
                    errors.seek(0)
                    last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
                    yield {"gone": ": ".join([why, *last])}
                    return
                *lines, buffer = (buffer + piece).split(b"\n")
                for line in lines:
                    message = json.loads(line)
                    left -= "done" in message
                    deadline = time.monotonic() + limit
                    yield message
        finally:
            process.kill()
            process.wait()


def _end(process: subprocess.Popen[bytes]) -> str:
    code = process.wait()
    return f"its process died of signal {-code}" if code < 0 else f"its process ended with exit code {code}"
