"""One small change to one kernel of the library, written as a file that `check` reads like a user's."""

import ast
import re
import types
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay import host
from assay.backends.nvrtc import HEADERS
from assay.catalog.select import select
from assay.kernel import Kernel
from assay.op import Op
from assay.selftest.mutants import cuda, operators
from assay.selftest.mutants.source import Change, Source, regions
from assay.selftest.mutants.tokens import CudaSource

LANGUAGES = ("triton", "numba", "njit", "cuda")
"""The languages in which the library's kernels are written out, rather than calls into another library."""


@dataclass(frozen=True)
class Mutant:
    kernel: Kernel
    """The kernel that was changed."""
    op: Op
    operator: str
    file: Path
    """The changed source: the kernel's Python, the CUDA source next to it, or a header of the library."""
    line: int
    column: int
    number: int
    """The number of the change among those of the same operator at this place."""
    before: str
    after: str
    device: bool
    """Whether the changed code is compiled for the device; otherwise it is host code that launches it."""
    constants: tuple[int, ...]
    hidden: bool
    """Whether it may change what the outputs need not show: which elements are read, or which threads wait for
    which."""
    narrows: bool
    """Whether an index has 32 bits instead of 64, which differs only beyond 2³¹ elements."""
    data: bytes
    """The whole source after the change."""
    marked: bytes = b""
    """For a barrier in CUDA C++, the source with a trap in its place. Code that does not change then does not contain
    it."""

    @property
    def name(self) -> str:
        """`gelu/triton@18:42:boundary:0`; stable as long as the source does not change."""
        where = "" if self.file == self.kernel.file else f"{self.file.name}:"
        return f"{self.kernel.name}@{where}{self.line}:{self.column}:{self.operator}:{self.number}"

    @property
    def written(self) -> list[int]:
        """Integers from 2 to 65536 in the kernel's sources, in ascending order."""
        assert self.kernel.file is not None
        files = (self.kernel.file, *_cuda_files(self.kernel.file))  # headers serve many kernels
        integers = {int(n) for f in files for n in re.findall(r"(?<![\w.])\d+(?![\w.])", f.read_text(errors="replace"))}
        return sorted(n for n in integers if 2 <= n <= 1 << 16)

    def write(self, folder: Path) -> tuple[Kernel, Op]:
        """Write the changed kernel into a folder of its own, and return it as read from that folder."""
        assert self.kernel.file is not None
        folder.mkdir(parents=True)
        address = self.kernel.address
        # Not named triton.py, since its folder will be importable.
        python = folder / f"mutant_of_{address.op}_{address.backend}.py"
        python.write_bytes(self.data if self.file == self.kernel.file else self.kernel.file.read_bytes())
        for source in _cuda_files(self.kernel.file):
            (folder / source.name).write_bytes(self.data if source == self.file else source.read_bytes())
        if self.file.is_relative_to(HEADERS):  # the source's own folder is searched first
            header = folder / self.file.relative_to(HEADERS)
            header.parent.mkdir()
            header.write_bytes(self.data)
        return next(c for c in select([python]) if c[0].function == self.kernel.function)


def mutants(kernel: Kernel, op: Op) -> list[Mutant]:
    """Return every mutant of a kernel in a stable order. Of mutants that Python compiles to the same bytecode only one
    is kept, and none that compiles to the kernel itself."""
    assert kernel.file is not None
    distinct: dict[object, Mutant | None] = {None: None}
    numbers: Counter[tuple[Path, int, str]] = Counter()
    for source, changes, device in _changes(kernel):
        distinct[_meaning(source.file, source.data)] = None
        for change in changes:
            before = source.data[change.start : change.end].decode()
            narrows = change.operator == "cast" and ("int64" in before or "long long" in before)
            if narrows and not host.runs_on_gpu():
                continue  # too many elements for an interpreter
            key = (source.file, change.start, change.operator)
            line, column = source.place(change.start)
            data = source.changed(change)
            barrier = change.operator == "barrier" and isinstance(source, CudaSource)
            marked = source.changed(replace(change, text="__trap()")) if barrier else b""
            mutant = Mutant(
                kernel,
                op,
                change.operator,
                source.file,
                line,
                column,
                numbers[key],
                before,
                change.text,
                device,
                change.constants,
                change.hidden,
                narrows,
                data,
                marked,
            )
            numbers[key] += 1
            distinct.setdefault(_meaning(source.file, data), mutant)
    changed = filter(None, distinct.values())
    return sorted(changed, key=lambda m: (m.file != kernel.file, m.file.name, m.line, m.column))


def _changes(kernel: Kernel) -> Iterator[tuple[Source | CudaSource, Iterable[Change], bool]]:
    """Yield each source of a kernel with its changes, and whether they are in code for the device."""
    assert kernel.file is not None
    source = Source(kernel.file)
    reached = regions(source, kernel)
    for region in reached:
        yield source, operators.changes(source, region, kernel.address.backend), region.device
    # The words in the strings of a launch are the names of the instances that it requests.
    strings = [n.value for r in reached for n in ast.walk(r.node) if isinstance(n, ast.Constant)]
    words = {word for text in strings if isinstance(text, str) for word in re.findall(r"[A-Za-z_]\w*", text)}
    files = _cuda_files(kernel.file)
    sources, headers = list(map(CudaSource, files)), list(map(CudaSource, _headers(files)))
    for text in sources:
        yield text, cuda.changes(text, words), True
    used: set[str] = set()
    named = set().union(*(_named(text, words) for text in sources))
    while used != named:  # a header may include another
        used = named
        named = used.union(*(_named(text, used) for text in headers))
    for text in headers:
        yield text, cuda.changes(text, used), True


def _named(text: CudaSource, words: set[str]) -> set[str]:
    """Return the names in the bodies that code containing these words reaches."""
    return {text.tokens[t].text for t in text.reached(words) if text.tokens[t].kind == "name"}


def _meaning(file: Path, data: bytes) -> object:
    """Return what distinguishes two sources: the bytecode, in which constants are folded, or the text if it is not
    Python. None for a source with a syntax error."""
    if file.suffix != ".py":
        return file, data
    try:
        return bytecode(compile(data, "", "exec"))
    except SyntaxError:
        return None


def bytecode(code: types.CodeType) -> tuple[Any, ...]:
    """Return the bytecode that Python compiles a source to, without line numbers."""
    constants = [bytecode(c) if isinstance(c, types.CodeType) else (type(c), repr(c)) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, tuple(constants)


def _cuda_files(python: Path) -> list[Path]:
    """Return the CUDA sources that a Python file names and that are next to it."""
    named = dict.fromkeys(re.findall(r"[\"'](\w+\.cu)[\"']", python.read_text()))
    return [python.parent / name for name in named if (python.parent / name).is_file()]


def _headers(sources: list[Path]) -> list[Path]:
    """Return the library's headers that these sources include, directly or indirectly."""
    found = list(sources)
    for one in found:
        names = re.findall(r"^#include <(assay/[\w.]+)>", one.read_text(errors="replace"), re.MULTILINE)
        found += [HEADERS / name for name in names if HEADERS / name not in found]
    return found[len(sources) :]
