"""One small change to one kernel of the library, as a file that `check` takes like a user's."""

import ast
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import host
from assay.catalog.select import select
from assay.kernel import Kernel
from assay.op import Op
from assay.selftest.mutants import cuda, operators
from assay.selftest.mutants.source import Change, Region, Source, regions
from assay.selftest.mutants.tokens import CudaSource

LANGUAGES = ("triton", "numba", "njit", "cuda")
"""Whose kernels are changed: those that are written out in the library and not calls into somebody else's."""


@dataclass(frozen=True)
class Mutant:
    kernel: Kernel
    """The one that was changed."""
    op: Op
    operator: str
    file: Path
    """The source that was changed: the kernel's Python, or the CUDA beside it."""
    line: int
    column: int
    number: int
    """Which of the operator's changes at this place."""
    before: str
    after: str
    device: bool
    """In code that is compiled; otherwise in the code that launches it."""
    constants: tuple[int, ...]
    hidden: bool
    """It may change what need not show in the outputs: which elements are read, or who waits for whom."""
    data: bytes
    """The whole source after the change."""

    @property
    def name(self) -> str:
        """`gelu/triton@18:42:boundary:0`: the same for as long as the source is the same."""
        where = "" if self.file == self.kernel.file else f"{self.file.name}:"
        return f"{self.kernel.name}@{where}{self.line}:{self.column}:{self.operator}:{self.number}"

    def __str__(self) -> str:
        return self.name

    @property
    def written(self) -> list[int]:
        """Integers from 2 on that stand in the sources of the kernel, small ones first."""
        assert self.kernel.file is not None
        files = (self.kernel.file, *_cuda_files(self.kernel.file))
        found = {int(n) for f in files for n in re.findall(r"(?<![\w.])\d+(?![\w.])", f.read_text())}
        return sorted(n for n in found if 2 <= n <= 1 << 16)

    def write(self, folder: Path) -> tuple[Kernel, Op]:
        """Put the changed kernel into a folder of its own and read it as any file of a user's."""
        assert self.kernel.file is not None
        folder.mkdir(parents=True)
        address = self.kernel.address
        # Not called triton.py: its folder will be importable.
        python = folder / f"mutant_of_{address.op}_{address.backend}.py"
        python.write_bytes(self.data if self.file == self.kernel.file else self.kernel.file.read_bytes())
        for source in _cuda_files(self.kernel.file):
            (folder / source.name).write_bytes(self.data if source == self.file else source.read_bytes())
        return next(c for c in select([python]) if c[0].function == self.kernel.function)


def mutants(kernel: Kernel, op: Op) -> list[Mutant]:
    """Every mutant of a kernel in a stable order. Of those that Python compiles to the same one is kept, and none that
    it compiles to what the kernel was."""
    found: dict[object, Mutant] = {}
    numbers: dict[tuple[Path, int, str], int] = {}
    for mutant in _all(kernel, op, numbers):
        key = _meaning(mutant)
        if key is not None:
            found.setdefault(key, mutant)
    changed = [m for m in found.values() if m.operator]
    return sorted(changed, key=lambda m: (m.file != kernel.file, m.file.name, m.line, m.column))


def _all(kernel: Kernel, op: Op, numbers: dict[tuple[Path, int, str], int]) -> Iterator[Mutant]:
    assert kernel.file is not None
    source = Source(kernel.file)
    reached = regions(source, kernel)
    yield Mutant(kernel, op, "", kernel.file, 0, 0, 0, "", "", False, (), False, source.data)  # what it was before
    for region in reached:
        for change in operators.changes(source, region, kernel.address.backend):
            yield from _of(kernel, op, source, change, region.device, numbers)
    for file in _cuda_files(kernel.file):
        text = CudaSource(file)
        yield Mutant(kernel, op, "", file, 0, 0, 0, "", "", False, (), False, text.text.encode())
        for change in cuda.changes(text, _words_in(reached)):
            yield from _of(kernel, op, text, change, True, numbers)


def _of(
    kernel: Kernel,
    op: Op,
    source: Source | CudaSource,
    change: Change,
    device: bool,
    numbers: dict[tuple[Path, int, str], int],
) -> Iterator[Mutant]:
    data = source.data if isinstance(source, Source) else source.text.encode()
    before = data[change.start : change.end].decode()
    if change.operator == "cast" and _needs_huge(before) and not host.runs_on_gpu():
        return  # only beyond 2**31 elements, which no interpreter holds, is the result another one
    key = (source.file, change.start, change.operator)
    number = numbers[key] = numbers.get(key, -1) + 1
    line, column = source.place(change.start)
    yield Mutant(
        kernel,
        op,
        change.operator,
        source.file,
        line,
        column,
        number,
        before,
        change.text,
        device,
        change.constants,
        change.hidden,
        source.changed(change),
    )


def _needs_huge(before: str) -> bool:
    return "int64" in before or "long long" in before


def _meaning(mutant: Mutant) -> object:
    """What tells two mutants apart: the bytecode, in which constants are folded, or the text of a language that Python
    cannot read. None where a change gave no program."""
    if mutant.file.suffix != ".py":
        return mutant.file, mutant.data
    try:
        return bytecode(compile(mutant.data, "", "exec"))
    except SyntaxError:
        return None


def bytecode(code: types.CodeType) -> tuple[Any, ...]:
    """What Python made of a source, lines aside."""
    constants = [bytecode(c) if isinstance(c, types.CodeType) else (type(c), repr(c)) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, tuple(constants)


def _cuda_files(python: Path) -> list[Path]:
    """The CUDA sources that a Python file names and that lie beside it."""
    named = dict.fromkeys(re.findall(r"\b\w+\.cu\b", python.read_text()))
    return [python.parent / name for name in named if (python.parent / name).is_file()]


def _words_in(reached: list[Region]) -> set[str]:
    """Words in the strings of a launch: the names of the instances it asks for."""
    strings = [n.value for r in reached for n in ast.walk(r.node) if isinstance(n, ast.Constant)]
    return {word for text in strings if isinstance(text, str) for word in re.findall(r"[A-Za-z_]\w*", text)}
