"""Live registers at every instruction, as nvdisasm counts them. It does so only for code of its own generation."""

from __future__ import annotations

import re
import subprocess
import tempfile

from assay import host

FLAGS = ("-c", "-plr")
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/.*?// \|\s*(\d*)")
_LIMIT = 60


def live_registers(cubin: bytes) -> dict[str, dict[int, int]] | None:
    """Symbol → address → general registers that are live there; None where nvdisasm cannot say."""
    tool = host.tool("nvdisasm")
    if tool is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            done = subprocess.run([tool, *FLAGS, file.name], capture_output=True, text=True, timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            return None
    return None if done.returncode else read(done.stdout)


def read(listing: str) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    here: dict[int, int] = {}
    for line in listing.splitlines():
        if section := _SECTION.match(line):
            here = found.setdefault(section[1].strip('"'), {})
        elif shown := _LINE.match(line):
            here[int(shown[1], 16)] = int(shown[2] or 0)
    return found
