"""Runs the steps of nvcc's dry run one by one and keeps every file that they write."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from assay.backends.nvcc import compiler
from assay.errors import AssayError, MalformedError, UsageError
from assay.inspect.phases.dry_run import plan
from assay.inspect.phases.replay import write_replay
from assay.inspect.phases.running import Failed, run
from assay.inspect.phases.step import Build, File, Phases, Step
from assay.isa.cubin import elf_sections
from assay.target import Target

__all__ = ["Build", "File", "Phases", "Step", "many", "phases"]

_CHOSEN = re.compile(
    r"-(c|dc|dw|dlink|E|M|MM|MD|MMD|o|odir|x|run|lib|link|ptx|cubin|fatbin|cuda|arch|code|gencode|keep|keep-dir|dryrun)"
    r"|--(compile|device-c|device-link|preprocess|output-file|output-directory|run|lib|link|ptx|cubin|fatbin|cuda"
    r"|gpu-architecture|gpu-code|generate-code|keep|keep-dir|dryrun)"
)
"""nvcc options that phases() sets itself."""


def phases(file: Path, targets: Sequence[Target], out: Path, extra: Sequence[str] = ()) -> Phases:
    """Run nvcc's steps for each target, in `out/<target>`. A target that fails holds its error; the others continue."""
    _usable(targets, extra)
    out.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    builds = tuple(_build(file, target, out / str(target), extra, stop) for target in dict.fromkeys(targets))
    return Phases(file, builds, write_replay(file, builds, out))


def many(
    files: Sequence[Path],
    targets: Sequence[Target],
    out: Path,
    jobs: int = 1,
    tick: Callable[[str, int], None] = lambda doing, done: None,
    extra: Sequence[str] = (),
) -> Iterator[Build]:
    """Yield the build of each file for each target as it finishes, running `jobs` at a time. A broken file does not
    stop the others. A file's folder is `out/<its name>`; its replay.sh is written after its last target."""
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
                        write_replay(build.file, builds[build.file], folders[build.file])
                    done += 1
                    tick(f"{build.file.name} for {build.target}", done)
                    yield build
        finally:  # also if the caller stops iterating: stop running builds, cancel waiting ones
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
    """Return a folder for each file, distinct even if two files have the same name."""
    folders: dict[Path, Path] = {}
    for file in files:
        name, number = file.stem, 1
        while out / name in folders.values():
            number += 1
            name = f"{file.stem}-{number}"
        folders[file] = out / name
    return folders


def _build(file: Path, target: Target, folder: Path, extra: Sequence[str], stop: threading.Event) -> Build:
    ran: list[Step] = []
    try:
        if not file.is_file():
            raise UsageError(f"there is no file {file}", fix="name a CUDA source file")
        folder.mkdir(parents=True, exist_ok=True)
        compiling, linking = plan(file.absolute(), target, folder, extra)
        for step in compiling:
            ran.append(run(step, folder, stop))
        if _has_main(folder / (file.stem + ".o")):
            for step in linking:
                ran.append(run(step, folder, stop))
    except Failed as failed:
        error = type(failed.error)(failed.error.what, where=failed.error.where or str(file), fix=failed.error.fix)
        return Build(file, target, folder, (*ran, failed.step), error)
    except AssayError as problem:
        return Build(file, target, folder, tuple(ran), problem)
    except OSError as problem:
        error = AssayError(str(problem), where=str(file), fix="is there room in the folder, and may you write there?")
        return Build(file, target, folder, tuple(ran), error)
    return Build(file, target, folder, tuple(ran))


def _has_main(made: Path) -> bool:
    """Return whether the object defines `main`, by its symbols: in the source, a macro might hide it."""
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
