"""The data of a compilation: a step and its files, a build for one target, all builds of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from assay.errors import AssayError
from assay.target import Target

WHAT = {
    "preprocess": "expands macros and includes",
    "cudafe++": "takes the host's side out of the source",
    "cicc": "compiles the device's side to PTX",
    "ptxas": "assembles PTX to machine code",
    "fatbinary": "puts machine code and PTX in one box",
    "nvlink": "links device code",
    "host compile": "compiles the host's side, with the box in it",
    "link": "links the program",
    "clean": "removes what an earlier run left",
}


@dataclass(frozen=True)
class File:
    path: str
    """Relative to the target's folder, or absolute."""
    size: int


@dataclass(frozen=True)
class Step:
    name: str
    """One of WHAT."""
    command: tuple[str, ...]
    environment: dict[str, str]
    """Variables that it needs in addition to the user's own; `$PATH` in a value is the user's."""
    reads: tuple[File, ...] = ()
    """Files in the command, those that generated files include, and the user's headers."""
    writes: tuple[File, ...] = ()
    seconds: float | None = None
    """None if it was not run."""
    output: str = ""
    """Warnings, and what -Xptxas -v prints."""


@dataclass(frozen=True)
class Build:
    """One file for one target."""

    file: Path
    target: Target
    folder: Path
    """The folder with every intermediate file."""
    steps: tuple[Step, ...]
    error: AssayError | None = None
    """The error of the last step."""

    def made(self, suffix: str) -> Path | None:
        """Return the intermediate file with this suffix (`.ptx`, `.cubin`, `.fatbin`, `.o`), or None."""
        path = self.folder / (self.file.stem + suffix)
        return path if any(f.path == path.name for s in self.steps for f in s.writes) else None


@dataclass(frozen=True)
class Phases:
    file: Path
    builds: tuple[Build, ...]
    replay: Path
    """A script that runs all the steps again, from its own folder."""
