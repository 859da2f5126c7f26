"""Writes a script that runs a file's compilation steps again, from the script's own folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from assay.backends.nvcc import compiler
from assay.backends.nvrtc import HEADERS
from assay.inspect.phases.dry_run import toolkit
from assay.inspect.phases.step import WHAT, Build


def write_replay(file: Path, builds: Sequence[Build], out: Path) -> Path:
    """Write replay.sh. Failed targets come last, so that they do not stop the others."""
    root = toolkit()
    paths = {"SOURCE": str(file.absolute()), "HEADERS": str(HEADERS)} | ({"CUDA": str(root)} if root else {})
    steps = [step for build in builds for step in build.steps]
    shared = dict(steps[0].environment) if steps else {}
    lines = [
        "#!/bin/sh",
        f"# The steps by which {compiler()} makes code from {' '.join(file.name.split())}. Written by assay inspect.",
        "# It works in its own folder, wherever it is called from; set SOURCE, HEADERS or CUDA to use others.",
        "set -eu",
        'CDPATH= cd -- "$(dirname -- "$0")"',
        *(f'[ -n "${{{name}:-}}" ] || {name}={shlex.quote(path)}' for name, path in paths.items()),
        *(f"export {key}={_quoted(value, paths, key)}" for key, value in shared.items()),
    ]
    for build in sorted(builds, key=lambda b: b.error is not None):
        lines += ["", f"# {build.target}" + (": stopped by an error" if build.error else "")]
        lines += [f"mkdir -p {build.target}", f"cd {build.target}"]
        for number, step in enumerate(build.steps, 1):
            own = {key: value for key, value in step.environment.items() if shared.get(key) != value}
            assigned = [f"{key}={_quoted(value, paths, key)}" for key, value in own.items()]
            lines += ["", f"# {build.target}, {number} of {len(build.steps)}: {step.name}: {WHAT[step.name]}"]
            lines.append(" ".join([*assigned, *(_quoted(word, paths) for word in step.command)]))
        lines += ["", "cd .."]
    out.mkdir(parents=True, exist_ok=True)
    script = out / "replay.sh"
    script.write_text("\n".join(lines) + "\n")
    script.chmod(0o755)
    return script


def _quoted(word: str, paths: dict[str, str], variable: str = "") -> str:
    """Quote a word for a shell, with `$SOURCE`, `$HEADERS` and `$CUDA` in place of their paths, and with the user's
    value of `variable`."""
    known = {path: f'"${name}"' for name, path in paths.items()}
    if variable:
        known[f"${variable}"] = f'"${{{variable}:-}}"'
    parts = re.split("(" + "|".join(map(re.escape, known)) + ")", word)
    return "".join(known.get(part) or (shlex.quote(part) if part else "") for part in parts) or "''"
