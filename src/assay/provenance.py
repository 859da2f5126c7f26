"""Provenance: where and with what a record was made."""

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
    """Return the part that does not change during the life of a process."""
    gpu = host.gpu()
    own = commit((Path(__file__),)) if _tracked((Path(__file__),)) else ""  # else it is installed, not a checkout
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
        "assay_commit": own,
        "commit": own,  # its name in records of schema 1 and 2
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
    """Return an id that the records of one invocation share. Ids sort by time."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + uuid.uuid4().hex[:6]


@cache
def cpu() -> str:
    """Return the processor's name. Linux on ARM gives numbers, which lscpu can translate."""
    info = Path("/proc/cpuinfo")
    said = info.read_text() if info.exists() else ""
    if name := _field(said, "model name"):
        return name
    listed = _printed("lscpu")
    return _field(listed, "Model name") or _field(said, "CPU part") or platform.processor() or platform.machine()


def _field(text: str, name: str) -> str:
    """Return the first non-empty value of the lines `name : value`."""
    values = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith(name))
    return next((v for v in values if v not in ("", "-")), "")


@cache
def commit(files: tuple[Path, ...], content: str = "") -> str:
    """Return the commit of the repository that the first file is in; empty outside of a repository. It ends in a + if
    the repository was changed since, or does not track all of the files. The result is kept for each `content`, a hash
    of the files."""
    folder = str(files[0].resolve().parent)
    described = _printed("git", "-C", folder, "describe", "--always", "--dirty=+", "--exclude=*").strip()
    return f"{described.removesuffix('+')}+" if described and not _tracked(files) else described


def _tracked(files: tuple[Path, ...]) -> bool:
    """Return whether one repository tracks all files."""
    folder, *names = map(str, (files[0].resolve().parent, *(file.resolve() for file in files)))
    try:
        return tool.call(("git", "-C", folder, "ls-files", "--error-unmatch", "--", *names)).code == 0
    except (OSError, AssayError):
        return False


def _printed(*command: str) -> str:
    """Return what a command prints; empty if there is no such command."""
    try:
        return tool.call(command, environment=os.environ | {"LC_ALL": "C"}).stdout
    except (OSError, AssayError):
        return ""


def source_of(file: Path | None, line: int = 0) -> dict[str, Any]:
    """Return file and line of a kernel's source, and a hash of it and of all of Assay's files that it uses. For a
    user's file, also return the commit of the repository that it is in."""
    if file is None:
        return {"file": "", "line": 0, "hash": ""}
    whole = b"".join(part.read_bytes() for part in parts(file))
    about = {"file": shown(file), "line": line, "hash": hashlib.sha256(whole).hexdigest()[:16]}
    if _PACKAGE in file.parents:
        return about
    own = tuple(part for part in parts(file) if _PACKAGE not in part.parents)
    return about | {"commit": commit(own, about["hash"])}


@cache
def parts(file: Path) -> tuple[Path, ...]:
    """Return a source and the files it names: the CUDA file beside it, library modules it imports, Assay's headers."""
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
    """Return a path as readers want it: relative to the package or the current folder if it is in one of them."""
    if file is None:
        return ""
    for base, prefix in ((_PACKAGE, "assay"), (Path.cwd(), "")):
        if base in file.parents:
            return str(Path(prefix) / file.relative_to(base))
    return str(file)
