"""The language of a kernel whose declaration does not name it: that of what its function reaches, in its file and in
the modules beside it."""

import ast
import builtins
import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from assay.catalog.needed import bound_by, top_level
from assay.catalog.source import module_file, parse
from assay.errors import SourceError, UsageError
from assay.kernel import BACKENDS

_LAUNCHED = {
    "triton.jit": "triton",
    "triton.autotune": "triton",
    "triton.heuristics": "triton",
    "triton.language": "triton",
    "triton.experimental": "triton",
    "assay.backends.triton": "triton",
    "assay.backends.cuda.Source": "cuda",
    "assay.backends.cuda.Binary": "cuda",
    "cupy.RawKernel": "cupy",
    "cupy.RawModule": "cupy",
    "cupy.ElementwiseKernel": "cupy",
    "cupy.ReductionKernel": "cupy",
    "cupy.fuse": "cupy",
    "cupyx.jit": "cupy",
    "assay.backends.cupy": "cupy",
    "numba.cuda": "numba",
    "assay.backends.numba": "numba",
    "numba.njit": "njit",
    "numba.jit": "njit",
    "numba.vectorize": "njit",
    "numba.guvectorize": "njit",
    "numba.vectorize.cuda": "numba",
    "numba.guvectorize.cuda": "numba",
    "numba.stencil": "njit",
    "numba.cfunc": "njit",
    "assay.backends.njit": "njit",
    "torch.compile": "inductor",
    "assay.backends.inductor": "inductor",
}
"""What makes or launches a kernel, or passes tensors to one, and its language."""
_HELPERS = {"triton": "triton", "assay.backends.cuda": "cuda", "cupy": "cupy", "cupyx": "cupy", "numba": "njit"}
"""The rest of these packages, such as `triton.cdiv`. It decides only if a function launches nothing."""
_ROOT = Path(__file__).resolve().parents[2]
_KERNELS = "assay.library."
_NEUTRAL = {"assay", "numpy", "torch", *sys.stdlib_module_names}
"""Packages of which a kernel in PyTorch may call anything."""


def language(file: Path, tree: ast.Module, function: ast.FunctionDef, line: int) -> str:
    """Return the backend of a kernel's function, whose `@kernel` is on this line. Raise SourceError if what it reaches
    belongs to several languages, or to packages that do not show one."""
    reached = _Reached()
    reached.follow(_Module(file, tree), function)
    found = reached.languages(_LAUNCHED) or reached.languages(_HELPERS)
    if len(found) == 1:
        return next(iter(found))
    where = f"{file}:{line}"
    if found:
        what = " and ".join(f"{name} (`{path}`, {reached.shown(path, file)})" for name, path in found.items())
        choice = " or ".join(f'backend="{name}"' for name in found)
        raise SourceError(
            f"{function.name} reaches {what}: which is the kernel's language is not clear",
            where=where,
            fix=f"write {choice} in @kernel",
        )
    if unknown := next((path for path in reached.lines if path.partition(".")[0] not in _NEUTRAL), None):
        raise SourceError(
            f"{function.name} calls `{unknown}`, which does not show the kernel's language",
            where=where,
            fix=f'write backend="…" in @kernel, with one of: {", ".join(BACKENDS)}',
        )
    return "torch"


@dataclass
class _Module:
    file: Path
    tree: ast.Module

    @cached_property
    def statements(self) -> list[ast.stmt]:
        return list(top_level(self.tree.body))

    @cached_property
    def binds(self) -> dict[str, list[ast.stmt]]:
        """The statements at the top level that define a name, without those that contain others, such as `if`."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.statements:
            whole = isinstance(statement, ast.FunctionDef | ast.ClassDef) or not hasattr(statement, "body")
            for name in bound_by(statement) if whole else ():
                found.setdefault(name, []).append(statement)
        return found

    @cached_property
    def imports(self) -> dict[str, str]:
        return {name: path for statement in self.statements for name, path in _imported(statement)}


@dataclass
class _Reached:
    """The imported names that a function uses, itself or in what it calls."""

    lines: dict[str, tuple[Path, int]] = field(default_factory=dict)
    """By dotted path: the file and line of the first use."""
    _seen: set[ast.stmt] = field(default_factory=set)
    _noted: set[tuple[Path, str]] = field(default_factory=set)
    _modules: dict[Path, _Module] = field(default_factory=dict)

    def languages(self, table: Mapping[str, str]) -> dict[str, str]:
        """Return the languages that these names belong to, each with the first name of it."""
        found: dict[str, str] = {}
        for path in self.lines:
            if name := _language_of(path, table):
                found.setdefault(name, path)
        return found

    def shown(self, path: str, file: Path) -> str:
        home, line = self.lines[path]
        return f"line {line}" if home == file else f"{home.name}:{line}"

    def follow(self, module: _Module, wanted: ast.stmt) -> None:
        """Add what a statement of a module uses, and what the definitions that it names use."""
        if wanted in self._seen:
            return
        self._seen.add(wanted)
        own = _local(wanted)
        imports = {name: path for name, path in module.imports.items() if name not in own}
        imports |= {name: path for node in ast.walk(wanted) for name, path in _imported(node)}
        for path, line in _used(wanted):
            first, _, rest = path.partition(".")
            if first in imports:
                self._note(module, ".".join(filter(None, (imports[first], rest))), line)
            elif first in own:
                continue
            elif first in module.binds:
                for statement in module.binds[first]:
                    self.follow(module, statement)
            elif not hasattr(builtins, first):
                for star in (origin for name, origin in imports.items() if name.startswith("*")):
                    self._note(module, f"{star}.{path}", line)

    def _note(self, module: _Module, path: str, line: int) -> None:
        """Follow an imported name into the module beside the file that defines it. Note any other."""
        if (module.file, path) in self._noted:
            return
        self._noted.add((module.file, path))
        defining, name = self._defining(module.file, path)
        if defining is None:
            self.lines.setdefault(path, (module.file, line))
        elif name in defining.imports:
            self._note(defining, defining.imports[name], line)
        else:
            for statement in defining.binds.get(name, ()):
                self.follow(defining, statement)

    def _defining(self, file: Path, path: str) -> tuple[_Module | None, str]:
        """Return the module that a dotted path leads to, if it is beside the file or in the library, and the name in
        it."""
        if not path.startswith(_KERNELS) and (_language_of(path, _LAUNCHED) or _language_of(path, _HELPERS)):
            return None, ""
        parts = path.lstrip(".").split(".")
        level = len(path) - len(path.lstrip("."))
        start, within = (_ROOT / "assay", _ROOT) if path.startswith(_KERNELS) else (file, file.resolve().parent.parent)
        for count in range(len(parts) - 1, 0, -1):
            found = module_file(start, ".".join(parts[:count]), level, within)
            if found is not None and found not in self._modules:
                with contextlib.suppress(SourceError, UsageError):
                    self._modules[found] = _Module(found, parse(found))
            if found in self._modules:
                return self._modules[found], parts[count]
        return None, ""


def _language_of(path: str, table: Mapping[str, str]) -> str:
    """Return the language of the longest prefix of a dotted path that is in the table."""
    parts = path.split(".")
    prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((table[prefix] for prefix in prefixes if prefix in table), "")


def _imported(statement: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, each with its dotted path; of `import *`, `*` and the module."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            whole = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (whole, whole)
    elif isinstance(statement, ast.ImportFrom):
        module = "." * statement.level + (statement.module or "")
        for alias in statement.names:
            if alias.name == "*":
                yield f"*{module}", module
            else:
                yield alias.asname or alias.name, f"{module}{'.' if statement.module else ''}{alias.name}"


def _local(statement: ast.stmt) -> set[str]:
    """Return the names of a function's parameters and variables; none of another statement."""
    if not isinstance(statement, ast.FunctionDef):
        return set()
    nodes = [node for part in statement.body for node in ast.walk(part)]
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    return stored | {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}


def _used(statement: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a statement reads, with their attributes (`triton.language.load`), and their lines. The
    `target` of a call follows its function's name: `vectorize.cuda`."""
    if path := _dotted(statement):
        yield path, statement.lineno  # type: ignore[attr-defined]
        return
    called, target = None, ""
    if isinstance(statement, ast.Call):
        called = statement.func
        given = [k.value.value for k in statement.keywords if k.arg == "target" and isinstance(k.value, ast.Constant)]
        target = f".{given[0]!s}" if given else ""
    for node in ast.iter_child_nodes(statement):
        for path, line in _used(node):
            yield path + target * (node is called), line


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        start = _dotted(node.value)
        return f"{start}.{node.attr}" if start else ""
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else ""
