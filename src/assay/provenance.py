"""Where and with what a record was made."""

import hashlib
import os
import platform
import re
import time
import uuid
from functools import cache
from pathlib import Path
from typing import Any

from assay import host, tool
from assay.errors import AssayError

_PACKAGE = Path(__file__).resolve().parent


@cache
def machine() -> dict[str, Any]:
    """What does not change while a process lives."""
    gpu = host.gpu()
    packages = (
        "torch",
        "triton",
        "numba",
        "numba-cuda",
        "cupy-cuda13x",
        "cuda-core",
        "cuda-bindings",
        "nvidia-cuda-nvrtc",
        "numpy",
    )
    return {
        "assay": host.version("kernel-assay") or "source",
        "commit": commit(Path(__file__).parent),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "gpu": gpu.name if gpu else None,
        "driver": gpu.driver if gpu else None,
        "packages": {name: version for name in packages if (version := host.version(name))},
    }


def provenance(seed: int, **more: Any) -> dict[str, Any]:
    return {**machine(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "seed": seed, **more}


def new_run() -> str:
    """An id under which the records of one invocation stand together; sorts by time."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + uuid.uuid4().hex[:6]


@cache
def cpu() -> str:
    """The processor's name. Linux on ARM gives numbers, which lscpu can read."""
    info = Path("/proc/cpuinfo")
    said = info.read_text() if info.exists() else ""
    if name := _field(said, "model name"):
        return name
    listed = _printed("lscpu")
    return _field(listed, "Model name") or _field(said, "CPU part") or platform.processor() or platform.machine()


def _field(text: str, name: str) -> str:
    """Of lines like `name : value`, the first value that says something."""
    values = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith(name))
    return next((v for v in values if v not in ("", "-")), "")


@cache
def commit(folder: Path) -> str:
    """The commit the code was at, with a + if it was changed since; empty outside a checkout."""
    return _printed("git", "-C", str(folder), "describe", "--always", "--dirty=+", "--exclude=*").strip()


def _printed(*command: str) -> str:
    """Empty where there is no such command."""
    try:
        return tool.call(command, environment=os.environ | {"LC_ALL": "C"}).stdout
    except (OSError, AssayError):
        return ""


def source_of(file: Path | None, line: int = 0) -> dict[str, Any]:
    """File, line and hash of a kernel's source, with all of ours that goes into it."""
    if file is None:
        return {"file": "", "line": 0, "hash": ""}
    whole = b"".join(part.read_bytes() for part in parts(file))
    return {"file": shown(file), "line": line, "hash": hashlib.sha256(whole).hexdigest()[:16]}


@cache
def parts(file: Path) -> tuple[Path, ...]:
    """A source and what it names: the CUDA file beside it, library modules it imports, headers of ours."""
    text = file.read_text(encoding="utf-8", errors="replace")
    named = [file.parent / name for name in re.findall(r"\b\w+\.cu\b", text)]
    named += [
        _PACKAGE / "library" / op / f"{name}.py" for op, name in re.findall(r"assay\.library\.(\w+)\.(\w+)", text)
    ]
    named += [_PACKAGE / "backends" / "include" / header for header in re.findall(r"#include <(assay/\w+\.cuh)>", text)]
    found = {file: None}
    for name in named:
        if name.is_file() and name not in found:
            found.update(dict.fromkeys(parts(name) if name != file else ()))
    return tuple(found)


def shown(file: Path | None) -> str:
    """A path as a reader wants it: from the package if ours, from where they stand if below it, else in full."""
    if file is None:
        return ""
    for base, prefix in ((_PACKAGE, "assay"), (Path.cwd(), "")):
        if base in file.parents:
            return str(Path(prefix) / file.relative_to(base))
    return str(file)
