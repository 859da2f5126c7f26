"""The compiler's own steps: nvcc says what it would run, we run it step by step and keep all that it makes."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from assay import host
from assay.backends.nvcc import INSTALL, compiler
from assay.errors import AssayError, BuildError, MalformedError, UsageError
from assay.isa.cubin import elf_sections
from assay.target import Target

LIMIT = 600.0
"""Seconds that one step may take."""

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

_CHOSEN = re.compile(
    r"-(c|dc|dw|dlink|E|M|MM|MD|MMD|o|odir|x|run|lib|link|ptx|cubin|fatbin|cuda|arch|code|gencode|keep|keep-dir|dryrun)"
    r"|--(compile|device-c|device-link|preprocess|output-file|output-directory|run|lib|link|ptx|cubin|fatbin|cuda"
    r"|gpu-architecture|gpu-code|generate-code|keep|keep-dir|dryrun)"
)
"""Options of nvcc that phases() gives itself."""
_NAMED_ONLY = ("--orig_src_file_name", "--orig_src_path_name", "--ident")
"""Options that name the source without reading it."""
_VARIABLE = re.compile(r"^(\w+)=(.*)$", re.DOTALL)
_INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"\n]+)"', re.MULTILINE)
_MARKER = re.compile(rb'^# \d+ "([^"<\n]+)"([ \d]*)$', re.MULTILINE)
"""`# 1 "file.h" 1 3`: where the preprocessor took the text from; a 3 is a header of the system."""
_COMPLAINTS = (
    re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error", re.MULTILINE),
    re.compile(r"^(?P<file>[^(\n]+)\((?P<line>\d+)\): (?:\w+ )?error", re.MULTILINE),
    re.compile(r"^ptxas (?P<file>.+?), line (?P<line>\d+); (?:error|fatal)", re.MULTILINE),
)
"""As gcc and clang, NVIDIA's front end, and ptxas say it."""


@dataclass(frozen=True)
class File:
    path: str
    """From the target's folder, or absolute."""
    size: int


@dataclass(frozen=True)
class Step:
    name: str
    """One of WHAT."""
    command: tuple[str, ...]
    environment: dict[str, str]
    """What it needs beside the user's own; `$PATH` in a value is the user's."""
    reads: tuple[File, ...] = ()
    """Files in the command, those that the generated ones include, and the user's headers."""
    writes: tuple[File, ...] = ()
    seconds: float | None = None
    """None where it was not run."""
    said: str = ""
    """Warnings, and what -Xptxas -v prints."""


@dataclass(frozen=True)
class Build:
    """One file for one target."""

    file: Path
    target: Target
    folder: Path
    """Where every intermediate file is."""
    steps: tuple[Step, ...]
    error: AssayError | None = None
    """Of the last step, which stopped it."""

    def made(self, suffix: str) -> Path | None:
        """The intermediate file of that kind: `.ptx`, `.cubin`, `.fatbin`, `.o`."""
        path = self.folder / (self.file.stem + suffix)
        return path if any(f.path == path.name for s in self.steps for f in s.writes) else None


@dataclass(frozen=True)
class Phases:
    file: Path
    builds: tuple[Build, ...]
    replay: Path
    """A script that runs all the steps again, from its own folder."""


def phases(file: Path, targets: Sequence[Target], out: Path, extra: Sequence[str] = ()) -> Phases:
    """Run nvcc's steps for each target, in `out/<target>`. A target that fails holds its error; the others go on."""
    _usable(targets, extra)
    out.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    builds = tuple(_build(file, target, out / str(target), extra, stop) for target in dict.fromkeys(targets))
    return Phases(file, builds, _write_replay(file, builds, out))


def many(
    files: Sequence[Path],
    targets: Sequence[Target],
    out: Path,
    jobs: int = 1,
    tick: Callable[[str, int], None] = lambda doing, done: None,
    extra: Sequence[str] = (),
) -> Iterator[Build]:
    """Each file for each target, `jobs` at a time, as they finish; a broken file does not stop the others.
    A file's folder is `out/<its name>`, and has its replay.sh once its last target is done."""
    _usable(targets, extra)
    stop, done = threading.Event(), 0
    targets = list(dict.fromkeys(targets))
    builds: dict[Path, list[Build]] = {file: [] for file in files}
    folders = _folders(builds, out)
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        waiting: set[Future[Build]] = {
            pool.submit(_build, file, target, folders[file] / str(target), extra, stop)
            for file in builds
            for target in targets
        }
        try:
            while waiting:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for build in (future.result() for future in ready):
                    builds[build.file].append(build)
                    if len(builds[build.file]) == len(targets):
                        _write_replay(build.file, builds[build.file], folders[build.file])
                    done += 1
                    tick(f"{build.file.name} for {build.target}", done)
                    yield build
        finally:  # also when the reader goes away: what runs is ended, what waits is dropped
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _usable(targets: Sequence[Target], extra: Sequence[str]) -> None:
    compiler()
    if not targets:
        raise UsageError("no target", fix="name one, such as sm_90")
    for target in targets:
        if not target.name.startswith("sm_"):
            raise UsageError(f"nvcc does not build for {target}", fix="a GPU architecture such as sm_90")
    for word in extra:
        if _CHOSEN.fullmatch(word.split("=")[0]):
            raise UsageError(
                f"{word} is chosen by assay", fix="leave it out; -D, -I, -O, -Xptxas, -rdc=true … are yours"
            )


def _folders(files: Iterable[Path], out: Path) -> dict[Path, Path]:
    """One for each file, also where two in different folders have one name."""
    found: dict[Path, Path] = {}
    for file in files:
        name, number = file.stem, 1
        while out / name in found.values():
            number += 1
            name = f"{file.stem}-{number}"
        found[file] = out / name
    return found


def _build(file: Path, target: Target, folder: Path, extra: Sequence[str], stop: threading.Event) -> Build:
    ran: list[Step] = []
    try:
        if not file.is_file():
            raise UsageError(f"there is no file {file}", fix="name a CUDA source file")
        folder.mkdir(parents=True, exist_ok=True)
        compiling, linking = _plan(file.absolute(), target, folder, extra)
        for step in compiling:
            ran.append(_run(step, folder, stop))
        if _has_main(folder / (file.stem + ".o")):
            for step in linking:
                ran.append(_run(step, folder, stop))
    except _Failed as failed:
        error = type(failed.error)(failed.error.what, where=failed.error.where or str(file), fix=failed.error.fix)
        return Build(file, target, folder, (*ran, failed.step), error)
    except AssayError as problem:
        return Build(file, target, folder, tuple(ran), problem)
    except OSError as problem:
        error = AssayError(str(problem), where=str(file), fix="is there room in the folder, and may you write there?")
        return Build(file, target, folder, tuple(ran), error)
    return Build(file, target, folder, tuple(ran))


def _plan(source: Path, target: Target, folder: Path, extra: Sequence[str]) -> tuple[list[Step], list[Step]]:
    """nvcc's steps to an object, and from there to a program; whether there is a `main` is known in between."""
    arch = target.name.removeprefix("sm_")
    root = _toolkit()  # its wheels have lib, where nvcc looks for lib64
    libraries = [f"-L{root / 'lib'}"] if root and (root / "lib" / "libcudart_static.a").exists() else []
    command = [
        str(host.tool("nvcc")), "--dryrun", "--keep", "-lineinfo", "-gencode", f"arch=compute_{arch},code=sm_{arch}",
        *extra, *libraries, "-x", "cu", str(source), "-o", source.stem,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, errors="replace")
    if done.returncode:
        raise BuildError(done.stderr.strip(), where=str(source), fix="mend the options, or the target, that nvcc names")
    steps = _parse(done.stderr)
    last = next((i for i, s in enumerate(steps) if s.name in ("nvlink", "link")), len(steps))
    compiling = [s for s in steps[:last] if s.name != "clean"]
    return compiling, [s for s in steps[:last] if s.name == "clean"] + steps[last:]


def _toolkit() -> Path | None:
    """The root of the toolkit that nvcc belongs to."""
    return next((r for r in host.cuda_roots() if Path(str(host.tool("nvcc"))).is_relative_to(r)), None)


def _parse(said: str) -> list[Step]:
    """nvcc's lines `#$ NAME=value` and `#$ command`."""
    variables: dict[str, str] = {}
    steps = []
    for line in said.splitlines():
        text = line.removeprefix("#$ ")
        if text == line:
            continue
        if variable := _VARIABLE.match(text):
            variables[variable[1]] = variable[2].strip()
            continue
        if text.startswith("rm "):  # the one line that nvcc does not quote; and the file need not be there
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
    """nvcc sets all of its variables for all of its steps; these are the ones that the tools look at."""
    found = {}
    for key in ("PATH", "LD_LIBRARY_PATH"):
        own = os.environ.get(key, "")
        added = variables.get(key, "").removesuffix(own).strip(":")
        if added:
            found[key] = f"{added}:${key}" if own else added
    if name == "cicc" and "NVVMIR_LIBRARY_DIR" in variables:
        found["NVVMIR_LIBRARY_DIR"] = variables["NVVMIR_LIBRARY_DIR"]
    return found


class _Failed(Exception):
    def __init__(self, step: Step, error: AssayError) -> None:
        self.step, self.error = step, error


def _run(step: Step, folder: Path, stop: threading.Event) -> Step:
    before = _present(folder)
    environment = dict(os.environ)
    for key, value in step.environment.items():
        environment[key] = value.replace(f"${key}", os.environ.get(key, ""))
    start = time.perf_counter()
    status, said = _call(step, folder, environment, stop)
    seconds = time.perf_counter() - start
    after = _present(folder)
    written = {name for name, stamp in after.items() if before.get(name) != stamp}
    reads = [f for f in _read_by(step, folder, written) if f.path not in written]
    writes = tuple(File(name, after[name][0]) for name in sorted(written))
    step = replace(step, reads=tuple(reads), writes=writes, seconds=seconds, said=said)
    if status is None:
        raise _Failed(
            step, BuildError(f"{step.name} was ended after {seconds:.0f} s", fix="a smaller source, or more time")
        )
    if status:
        raise _Failed(step, _error(step, folder, status))
    return step


def _call(step: Step, folder: Path, env: dict[str, str], stop: threading.Event) -> tuple[int | None, str]:
    """Its status and its words; None when it was ended for its time, with all the processes it started."""
    try:
        process = subprocess.Popen(
            step.command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, errors="replace", start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError:
        fix = (
            INSTALL
            if step.name in ("cudafe++", "cicc", "ptxas", "fatbinary", "nvlink")
            else "install a host compiler: gcc"
        )
        raise _Failed(step, AssayError(f"{step.command[0]} is not here", fix=fix)) from None
    deadline = time.monotonic() + LIMIT
    try:
        while True:
            try:
                said, _ = process.communicate(timeout=0.5)
                return process.returncode, said.strip()
            except subprocess.TimeoutExpired:
                if stop.is_set() or time.monotonic() > deadline:
                    return None, ""
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _present(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in folder.iterdir():
        if path.is_file():
            state = path.stat()
            found[path.name] = (state.st_size, state.st_mtime_ns)
    return found


def _read_by(step: Step, folder: Path, written: set[str]) -> Iterator[File]:
    """Files that the command names, that generated ones among them include, and that the preprocessor noted."""
    words = [
        word
        for option, word in pairwise(step.command)
        if option not in _NAMED_ONLY and not word.startswith(_NAMED_ONLY)
    ]
    waiting = [part for word in words for part in (word, *re.split(r'[=,"]', word)[1:])]
    if step.name == "preprocess":
        waiting += [header for name in written for header in _headers(folder / name)]
    seen: set[Path] = set()
    while waiting:
        path = folder / waiting.pop(0)
        if path in seen or not _is_file(path):
            continue
        seen.add(path)
        inside = path.parent == folder
        if step.name == "host compile" and inside and path.name not in written:
            waiting += [name.decode(errors="replace") for name in _INCLUDE.findall(path.read_bytes())]
        yield File(path.name if inside else str(path), path.stat().st_size)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a word of the command that is too long for a name
        return False


def _headers(preprocessed: Path) -> list[str]:
    """The user's own: neither the system's nor CUDA's."""
    roots = tuple(str(r) for r in host.cuda_roots())
    names = (
        m[1].decode(errors="replace") for m in _MARKER.finditer(preprocessed.read_bytes()) if b"3" not in m[2].split()
    )
    return [n for n in dict.fromkeys(names) if not n.startswith(roots) and not n.startswith("/usr/include")]


def _error(step: Step, folder: Path, status: int) -> BuildError:
    said = step.said or f"{step.name} ended with status {status} and said nothing"
    found = next((m for pattern in _COMPLAINTS if (m := pattern.search(said))), None)
    where = f"{found['file']}:{found['line']}" if found else ""
    if found and step.name == "ptxas":
        where = _source_of(folder / found["file"], int(found["line"])) or where
    fix = "mend the source at the line named above" if found else f"see what {step.name} says above"
    return BuildError(f"{step.name}: {said}", where=where, fix=fix)


def _source_of(ptx: Path, line: int) -> str:
    """Where the source is that became this line of PTX: by the last `.loc` before it."""
    lines = ptx.read_text(errors="replace").splitlines() if ptx.is_file() else []
    for text in reversed(lines[:line]):
        if place := re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", text):
            named = next((m for t in lines if (m := re.match(rf'\s*\.file\s+{place[1]}\s+"([^"]+)"', t))), None)
            return f"{named[1]}:{place[2]}" if named else ""
    return ""


def _has_main(made: Path) -> bool:
    """Does the object define `main`? Its symbols know; the text might hide it in a macro."""
    try:
        by_name = {s.name: s.data for s in elf_sections(made.read_bytes())}
    except (OSError, MalformedError):
        return False
    table, names = by_name.get(".symtab", b""), by_name.get(".strtab", b"")
    for at in range(0, len(table) - 23, 24):
        name, section = int.from_bytes(table[at : at + 4], "little"), table[at + 6 : at + 8]
        if names[name : name + 5] == b"main\0" and section != b"\0\0":
            return True
    return False


def _write_replay(file: Path, builds: Sequence[Build], out: Path) -> Path:
    """Targets that failed come last, so that they do not stop the others."""
    root = _toolkit()
    paths = {"SOURCE": str(file.absolute())} | ({"CUDA": str(root)} if root else {})
    steps = [step for build in builds for step in build.steps]
    shared = dict(steps[0].environment) if steps else {}
    lines = [
        "#!/bin/sh",
        f"# The steps by which {compiler()} makes code from {' '.join(file.name.split())}. Written by assay inspect.",
        "# It works in its own folder, wherever it is called from; set SOURCE or CUDA to use others.",
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
    """For a shell, with `$SOURCE` and `$CUDA` where their paths stand, and the user's own value of a variable."""
    known = {path: f'"${name}"' for name, path in paths.items()}
    if variable:
        known[f"${variable}"] = f'"${{{variable}:-}}"'
    parts = re.split("(" + "|".join(map(re.escape, known)) + ")", word)
    return "".join(known.get(part) or (shlex.quote(part) if part else "") for part in parts) or "''"
