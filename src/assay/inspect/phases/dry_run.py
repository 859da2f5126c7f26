"""Parses nvcc's dry run into steps."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from assay import host, tool
from assay.backends.nvcc import include_flags
from assay.errors import BuildError
from assay.inspect.phases.step import WHAT, Step
from assay.target import Target

_VARIABLE = re.compile(r"^(\w+)=(.*)$", re.DOTALL)


def plan(source: Path, target: Target, folder: Path, extra: Sequence[str]) -> tuple[list[Step], list[Step]]:
    """Return nvcc's steps to an object, and those from there to a program, which apply only to an object with a
    `main`."""
    arch = target.name.removeprefix("sm_")
    root = toolkit()  # NVIDIA's wheels have lib, but nvcc looks for lib64
    libraries = [f"-L{root / 'lib'}"] if root and (root / "lib" / "libcudart_static.a").exists() else []
    command = [
        str(host.tool("nvcc")),
        "--dryrun",
        "--keep",
        "-lineinfo",
        "-gencode",
        f"arch=compute_{arch},code=sm_{arch}",
        *include_flags(),
        *extra,
        *libraries,
        "-x",
        "cu",
        str(source),
        "-o",
        source.stem,
    ]
    ran = tool.call(command, folder=folder)
    if ran.code:
        raise BuildError(ran.complaint, where=str(source), fix="fix the options, or the target, that nvcc names")
    steps = _parse(ran.stderr)
    last = next((i for i, s in enumerate(steps) if s.name in ("nvlink", "link")), len(steps))
    compiling = [s for s in steps[:last] if s.name != "clean"]
    return compiling, [s for s in steps[:last] if s.name == "clean"] + steps[last:]


def toolkit() -> Path | None:
    """Return the root of the toolkit that nvcc belongs to."""
    return next((r for r in host.cuda_roots() if Path(str(host.tool("nvcc"))).is_relative_to(r)), None)


def _parse(output: str) -> list[Step]:
    """Return the steps in nvcc's lines `#$ NAME=value` and `#$ command`."""
    variables: dict[str, str] = {}
    steps = []
    for line in output.splitlines():
        text = line.removeprefix("#$ ")
        if text == line:
            continue
        if variable := _VARIABLE.match(text):
            variables[variable[1]] = variable[2].strip()
            continue
        if text.startswith("rm "):  # the only line that nvcc does not quote; the file may not exist
            command = ["rm", "-f", "--", text.removeprefix("rm ").strip()]
        else:
            try:
                command = shlex.split(text)
            except ValueError:
                raise BuildError(
                    f"nvcc's line cannot be read: {text}", fix="take quotes out of the file's name"
                ) from None
            command[0] = re.sub(r"\$(\w+)", lambda m: variables.get(m[1], m[0]), command[0])
        name = _name(command)
        steps.append(Step(name, tuple(command), _environment(name, variables)))
    return steps


def _name(command: Sequence[str]) -> str:
    tool = Path(command[0]).name
    if tool == "rm":
        return "clean"
    if tool in WHAT:
        return tool
    return "preprocess" if "-E" in command else "host compile" if "-c" in command else "link"


def _environment(name: str, variables: dict[str, str]) -> dict[str, str]:
    """Return the variables that a step's tool reads; nvcc sets all of its variables for all steps."""
    needed = {}
    for key in ("PATH", "LD_LIBRARY_PATH"):
        own = os.environ.get(key, "")
        added = variables.get(key, "").removesuffix(own).strip(":")
        if added:
            needed[key] = f"{added}:${key}" if own else added
    if name == "cicc" and "NVVMIR_LIBRARY_DIR" in variables:
        needed["NVVMIR_LIBRARY_DIR"] = variables["NVVMIR_LIBRARY_DIR"]
    return needed
