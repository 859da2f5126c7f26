"""Finds the kernels and ops that a user names: by op, address, pattern, file, address in a file, or function.

An op is identified by its name and the file that declares it, a kernel by its address and its file, so two files may
use the same names. Each kernel belongs to the op that it names together with its file, else to the op of its own file,
else to the op of that name that another file of the same command declares, else to the library's. If that leaves two
answers, the kernel is refused."""

import fnmatch
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay import provenance
from assay.catalog import advice, library
from assay.catalog.declared import verify_against
from assay.catalog.derived import completed
from assay.catalog.reader import Contents, contents, kernels_in_cuda, op_of_cuda, ops_in
from assay.catalog.signature import verify_signature
from assay.catalog.source import contents as bytes_of
from assay.errors import AssayError, SourceError, UsageError
from assay.kernel import Kernel
from assay.op import Op
from assay.settings import did_you_mean

Choice = tuple[Kernel, Op]
Named = str | Path | Callable[..., Any] | Choice
"""What may be named: text, a path, a decorated function, or an earlier choice."""


@dataclass
class Selection:
    """The kernels named, in the order named and without repeats, and the errors for others."""

    choices: list[Choice] = field(default_factory=list)
    refused: list[AssayError] = field(default_factory=list)


def select(what: Iterable[Named], op: str | None = None) -> list[Choice]:
    """Return the kernels named. Raise the first error in any of them."""
    selection = gather(what, op)
    if selection.refused:
        raise selection.refused[0]
    return selection.choices


def gather(what: Iterable[Named], op: str | None = None, command: str = "") -> Selection:
    """Return the kernels named, and the errors; an error in one does not affect the others. `command`: what the user
    typed before the names (`assay bench`), for advice."""
    named, selection = list(what), Selection()
    files = _Files(selection.refused, command)
    for item in named:
        if not isinstance(item, tuple) and (file := _file(item)[0]) is not None:
            files.add(file)
    choices: dict[str, Choice] = {}
    for item in named:
        try:
            chosen = [item] if isinstance(item, tuple) else _chosen(item, op, files)
        except AssayError as problem:
            selection.refused.append(problem)
            continue
        for choice in chosen:
            choices.setdefault(choice[0].identity, choice)
    selection.refused += files.idle()
    for kernel, its_op in choices.values():
        try:
            verify_against(kernel, its_op)
            verify_signature(kernel, its_op)
            selection.choices.append(_narrowed(kernel, its_op))
        except AssayError as problem:
            selection.refused.append(problem)
    return selection


def everything() -> list[Choice]:
    """Return all kernels of the library."""
    return [_narrowed(k, library.ops()[k.address.op]) for k in library.kernels()]


def _narrowed(kernel: Kernel, op: Op) -> Choice:
    return kernel, op.narrowed(kernel.requires, kernel.most)


def _file(item: str | Path | Callable[..., Any]) -> tuple[Path | None, str]:
    """Return the file that is named, if any, known by its suffix or because it exists; and the address of the one
    kernel that is named in it: `my_op.py:row_sum/torch`."""
    if callable(item):
        return None, ""
    text = str(item)
    if one := re.fullmatch(r"(.+\.(?:py|cu)):(\w+/\w+(?::\w+)?)", text):
        return Path(one[1]), one[2]
    if text.endswith((".py", ".cu")):
        return Path(item), ""
    try:
        there = Path(item).exists()
    except (OSError, ValueError):
        there = True  # reading it gives the reason
    known = text in library.ops() or any(k.name == text for k in library.kernels())
    return (Path(item) if there and not known else None), ""


class _Files:
    """The Python files of one command, each read once, even if it is named in several ways."""

    def __init__(self, refused: list[AssayError], command: str = "") -> None:
        self.refused, self.command = refused, command
        self._read: dict[Path, Contents] = {}
        self._shown: dict[Path, Path] = {}
        self._used: set[Path] = set()
        """Files whose ops a kernel of another file uses."""

    def add(self, file: Path) -> None:
        if file.suffix == ".cu":
            return
        try:
            bytes_of(file)  # a link to itself cannot be resolved
            path = file.resolve()
            if path not in self._read:
                self._shown[path] = file
                self._read[path] = contents(file)
        except AssayError as problem:
            self.refused.append(problem)
            return
        self.refused += [p for p in self._read[path].refused if p not in self.refused]

    def contents(self, file: Path) -> Contents:
        """Return what a file declares; nothing if it was refused."""
        try:
            return self._read.get(file.resolve(), Contents())
        except (OSError, RuntimeError, ValueError):
            return Contents()

    def op(self, name: str, file: Path, where: str) -> Op:
        """Return the op that a kernel in `file` means by `name`."""
        if own := self.contents(file).ops.get(name):
            return own
        others = {p: c.ops[name] for p, c in self._read.items() if name in c.ops}
        # A file with kernels of its own for this op is complete: it does not declare the op for others.
        shared = [p for p in others if not any(k.address.op == name for k in self._read[p].kernels)]
        if name in library.ops() and not shared:
            if not others:
                return library.ops()[name]
            raise _ambiguous(name, where, [*map(provenance.shown, others), "the library"])
        offered = shared or [*others]
        if len(offered) > 1:
            raise _ambiguous(name, where, [*map(provenance.shown, offered)])
        if offered:
            self._used.add(offered[0])
            return others[offered[0]]
        if name in self.contents(file).broken:
            raise SourceError(f"the op {name}, declared in this file, was refused", where=where, fix="fix it first")
        known = [*(o for c in self._read.values() for o in c.ops), *library.ops()]
        raise SourceError(f"no op called '{name}'", where=where, fix=advice.which_file(name, file, known, self.command))

    def declared(self) -> dict[str, list[str]]:
        """Return the ops that the command's files declare, by the files' shown names."""
        return {provenance.shown(path): [*read.ops] for path, read in self._read.items() if read.ops}

    def declaring(self, name: str) -> list[Path]:
        """Return the files of the command that declare an op of this name."""
        return [self._shown[path] for path, read in self._read.items() if name in read.ops]

    def op_in(self, file: Path, name: str, where: str) -> Op:
        """Return the op that `file` declares, whether or not the command names that file."""
        if not file.exists():
            fix = "the path is relative to the current folder; in a comment of a .cu file, to that file's"
            raise UsageError(f"{where}: no file called {file}", fix=fix)
        bytes_of(file)
        path = file.resolve()
        declared = self._read[path].ops if path in self._read else ops_in(file)
        if name not in declared:
            fix = f"it declares: {', '.join(declared)}" if declared else "declare one there with @op"
            raise SourceError(f"{provenance.shown(path)} declares no op called '{name}'", where=where, fix=fix)
        self._used.add(path)
        return declared[name]

    def idle(self) -> list[AssayError]:
        """Return an error for each file that has neither a kernel nor an op that another file's kernel uses."""
        result: list[AssayError] = []
        for path, read in self._read.items():
            if read.kernels or read.refused or path in self._used:
                continue
            if read.ops:
                what = f"no kernel in this file, and none is named that computes its op {' or '.join(read.ops)}"
                whole = f"{self._shown[path]}:{next(iter(read.ops))}/torch"
                fix = f"name the file that holds the kernel too; PyTorch's own is {whole}"
            else:
                what, fix = "no kernel in this file", 'mark one with @kernel("gelu"); see docs/first-kernel.md'
            result.append(SourceError(what, where=str(self._shown[path]), fix=fix))
        return result


def _ambiguous(name: str, where: str, homes: list[str]) -> SourceError:
    return SourceError(
        f"the op {name} is declared by {' and by '.join(homes)}: which one is meant is not clear",
        where=where,
        fix="declare the op in the same file, or name that file in a command without the others",
    )


def _chosen(item: str | Path | Callable[..., Any], op: str | None, files: _Files) -> list[Choice]:
    if callable(item):
        return _of_function(item, files)
    file, wanted = _file(item)
    if file is None:
        return _of_name(str(item), files)
    return _of_address(file, wanted, files, op) if wanted else _of_file(file, op, files)


def _of_name(name: str, files: _Files) -> list[Choice]:
    if name in library.ops():
        return [(k, library.ops()[name]) for k in library.kernels() if k.address.op == name]
    matching = [(k, library.ops()[k.address.op]) for k in library.kernels() if fnmatch.fnmatch(k.name, name)]
    if matching:
        return matching
    if not set(name).isdisjoint("*?["):
        raise UsageError(f"no kernel matches '{name}'", fix="`assay list` shows them all; quote a pattern: 'gelu/*'")
    if "/" not in name:
        library.find_op(name)
    if homes := files.declaring(name.partition("/")[0]):
        return [choice for home in homes for choice in _of_address(home, name, files)]
    hint = did_you_mean(name, [k.name for k in library.kernels()])
    raise UsageError(
        f"no kernel called '{name}'", fix=f"{hint}`assay list` shows them all; of an op of yours: FILE.py:{name}"
    )


def _of_address(file: Path, wanted: str, files: _Files, op_given: str | None = None) -> list[Choice]:
    """Return the kernel of that address in a file: the one written there, else the one derived from the op that the
    file declares."""
    choices = _of_file(file, op_given, files)
    own = [choice for choice in choices if choice[0].name == wanted]
    if own:
        return own
    name = wanted.partition("/")[0]
    declared = files.contents(file).ops
    elsewhere = name not in declared and (not declared or any(kernel.address.op == name for kernel, _ in choices))
    if file.suffix == ".cu" or (choices and elsewhere):
        raise _no_kernel(file, wanted, [kernel for kernel, _ in choices])
    op = files.op_in(file, name, str(file))
    kernels = completed(op, [kernel for kernel, _ in choices])
    if named := [kernel for kernel in kernels if kernel.name == wanted]:
        return [(kernel, op) for kernel in named]
    raise _no_kernel(file, wanted, kernels)


def _no_kernel(file: Path, wanted: str, kernels: list[Kernel]) -> UsageError:
    names = [kernel.name for kernel in kernels]
    near = did_you_mean(wanted, names)
    others = "" if near and all(name in near for name in names) else f"it has: {', '.join(names)}"
    return UsageError(f"{file} has no kernel {wanted}", fix=f"{near}{others}".strip())


def _of_file(file: Path, op: str | None, files: _Files) -> list[Choice]:
    if file.suffix == ".cu":
        its_op = _op_of_cuda(file, op, files)
        return [(k, its_op) for k in kernels_in_cuda(file, its_op)]
    choices = []
    for kernel in files.contents(file).kernels:
        try:
            name, where = kernel.address.op, f"{file}:{kernel.line}"
            its_op = files.op_in(kernel.op_file, name, where) if kernel.op_file else files.op(name, file, where)
            choices.append((kernel, its_op))
        except AssayError as problem:
            files.refused.append(problem)
    return choices


def _op_of_cuda(file: Path, op: str | None, files: _Files) -> Op:
    """Return the op of a bare .cu file: the one that the command names, or else the file itself."""
    said = op_of_cuda(file)
    if op is None and said is None:
        raise UsageError(
            f"{file}: which op does it compute? It has no comment `// assay: op NAME`",
            fix=advice.which_op(file, files.declared(), files.command),
        )
    if op is None:
        assert said is not None
        home, name, where = said
        return files.op_in(file.parent / home, name, where) if home else files.op(name, file, where)
    home, _, name = op.rpartition(":")
    asked = files.op_in(Path(home), name, f"--op {op}") if home else files.op(name, file, f"--op {op}")
    if said and (said[1] != asked.name or (said[0] and (file.parent / said[0]).resolve() != Path(asked.source))):
        shown = ":".join(filter(None, said[:2]))
        raise UsageError(
            f"{said[2]}: the file says that it computes {shown}, and the command says --op {op}",
            fix="leave --op out, or change the comment",
        )
    return asked


def _of_function(function: Callable[..., Any], files: _Files) -> list[Choice]:
    if isinstance(function, Op):
        raise UsageError(
            f"{function.name} is an op, not a kernel", fix="pass a kernel of it, or the file that has both"
        )
    if not hasattr(function, "__assay__"):
        raise UsageError(
            f"{getattr(function, '__name__', function)} is not marked as a kernel", fix='put @kernel("gelu") above it'
        )
    file = Path(inspect.getsourcefile(inspect.unwrap(function)) or "")
    files.add(file)
    choices = [c for c in _of_file(file, None, files) if c[0].function == function.__name__]
    if not choices:
        raise SourceError(
            f"{function.__name__} is not at the top level of its file",
            where=str(file),
            fix="a worker must be able to import it: move it there",
        )
    return choices
