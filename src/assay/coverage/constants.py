"""Finds the constants in a kernel's own code: block sizes, literals in branches, immediates that its PTX compares with.

A kernel may behave differently on either side of each, so they give sizes (`regimes.around`) and values (`near:C`) that
a list made without looking at the kernel would not contain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from assay.catalog import source
from assay.catalog.needed import bound_by, needed_by
from assay.errors import AssayError
from assay.kernel import Kernel
from assay.op import Op
from assay.syntax import last_name

_LARGEST = 1 << 24
_SMALLEST = 1e-15
"""The smallest literal that inputs are brought near to, such as an eps. Squares of much smaller ones are no normal
numbers."""
_GRID, _FEW_BLOCKS = 256, 8
"""The least number of blocks to which a grid may be limited: of any number, and of a quotient."""
ROUNDED_UP = ("cdiv", "ceil_div", "ceildiv", "div_up")
"""Functions that return how many blocks of a length cover an axis."""
_SCHEDULE = ("num_warps", "num_stages", "num_ctas")
"""Launch parameters that do not determine any size."""
_LENGTHS = ("shape", "numel", "size", "ndim", "stride", "nelement", "element_size")
"""Attributes of a tensor that give lengths: a number in a comparison with one is not a value."""
_MOST = 12
"""The most constants of each sort that are kept; those in comparisons come first."""
_MORE = 6
"""The most further constants that only appear in the PTX: values of products, macros and template parameters."""
_CPP_LITERAL = re.compile(r"(?<![\w.])(0[xX][0-9a-fA-F']+|\d[\d']*(?:\.\d*)?(?:[eE][-+]?\d+)?)[uUlLfF]*(?![\w.])")
_CPP_SHIFT = re.compile(r"\b1[uUlL]*\s*<<\s*(\d{1,2})\b")
_CPP_NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|^\s*#\s*(?:include|pragma|error)[^\n]*", re.S | re.M)
_CPP_COMPARISON = re.compile(r"[<>=!]=|[<>%](?!>|<)")


@dataclass(frozen=True)
class Bound:
    """A length of an axis beyond which a launch takes another branch."""

    axis: str
    size: int


@dataclass(frozen=True)
class Constants:
    sizes: tuple[int, ...] = ()
    """Integers of at least 3, the most relevant first."""
    values: tuple[float, ...] = ()
    """Floating-point literals that inputs may be compared with."""
    bounds: tuple[Bound, ...] = ()
    """Lengths that the launch itself compares an axis with (assay.coverage.branches)."""
    limits: tuple[int, ...] = ()
    """Integer arguments of `min` in the kernel's own Python: a helper may limit a grid to that many blocks."""

    def beside(self, op: Op) -> Constants:
        """Return these with the values of the op's reference. Those that only one of both has come first."""
        own, others = self.values, _of_reference(op)
        apart = [v for v in (*own, *others) if (v in own) != (v in others)]
        return replace(self, values=tuple(dict.fromkeys((*apart, *own))))


def of(kernel: Kernel, immediates: Iterable[int] = (), bounds: Iterable[Bound] = ()) -> Constants:
    """Return the constants in a kernel's file, in the .cu files that it or a module beside it names, in their headers,
    and in comparisons of its PTX."""
    if kernel.file is None:
        return Constants()
    limits: tuple[int, ...] = ()
    if kernel.file.suffix == ".py":
        sizes, values, limits = _python(kernel.file, kernel.function)
        own = [kernel.file, *source.imported_by(kernel.file)]
        sources = [cuda for file in own for cuda in source.named_by(file)]
    else:
        sizes, values, sources = (), (), [kernel.file]
    for name in dict.fromkeys(file for cuda in sources for file in source.with_headers(cuda)):
        more, floats = _cuda(name)
        sizes, values = sizes + more, values + floats
    tuned = [n for name, choices in kernel.tune.items() if name not in _SCHEDULE for n in choices if type(n) is int]
    kept = [n for n in dict.fromkeys([*sizes, *tuned]) if 3 <= n <= _LARGEST][:_MOST]
    kept += [n for n in dict.fromkeys(immediates) if 3 <= n <= _LARGEST and n not in kept][:_MORE]
    return Constants(tuple(kept), _telling(values)[:_MOST], tuple(bounds), limits)


def _telling(values: Iterable[float]) -> tuple[float, ...]:
    """Return the distinct magnitudes that inputs can be brought near to."""
    return tuple(v for v in dict.fromkeys(map(abs, values)) if _SMALLEST <= v <= 1e6 and v not in (0.5, 1.0, 2.0))


def _of_reference(op: Op) -> tuple[float, ...]:
    """Return the floating-point literals in the code of an op's reference."""
    todo, values = [getattr(op.reference, "__code__", None)], []
    while todo:
        constants = getattr(todo.pop(), "co_consts", ())
        todo += constants
        values += [c for c in constants if isinstance(c, float)]
    return _telling(values)


def _python(file: Path, function: str) -> tuple[tuple[int, ...], tuple[float, ...], tuple[int, ...]]:
    """Return the literals of a Python file, and the limits in the code that the function needs. Literals in that code,
    which may be in files beside this one, come first, because the file may hold other kernels."""
    own, rest = _statements(file, function, file.parent.parent, set())
    own, rest = ([s for s in part if not _declares_an_op(s)] for part in (own, rest))
    sizes: list[int] = []
    values: list[float] = []
    for part in (own, rest):
        more, floats = _literals(part)
        sizes, values = sizes + more, values + floats
    return tuple(dict.fromkeys(sizes)), tuple(dict.fromkeys(values)), _limits(own)


def _declares_an_op(statement: ast.stmt) -> bool:
    """True for `@op(…)` above a reference: its numbers are those of the contract, not of a kernel."""
    decorators = statement.decorator_list if isinstance(statement, ast.FunctionDef) else []
    return any(isinstance(d, ast.Call) and last_name(d.func) == "op" for d in decorators)


def _limits(statements: list[ast.stmt]) -> tuple[int, ...]:
    """Return the integer arguments of `min`, given as literals, as names that are assigned at the top level, or as
    parameters with a default. Small ones count only beside a quotient, which is a number of blocks."""
    named = {name: folded(value) for name, value in assigned(statements).items()}
    nodes = [node for statement in statements for node in ast.walk(statement)]
    for function in (node for node in nodes if isinstance(node, ast.FunctionDef)):
        named |= {name: folded(value) for name, value in defaults(function.args)}
    limits: dict[int, None] = {}
    for call in (node for node in nodes if isinstance(node, ast.Call) and last_name(node.func) == "min"):
        least = _FEW_BLOCKS if any(_is_quotient(node) for a in call.args for node in ast.walk(a)) else _GRID
        given = [named.get(a.id) if isinstance(a, ast.Name) else folded(a) for a in call.args]
        limits |= {n: None for n in given if type(n) is int and least <= n <= _LARGEST}
    return tuple(limits)


def _is_quotient(node: ast.AST) -> bool:
    divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)
    return divides or (isinstance(node, ast.Call) and last_name(node.func) in ROUNDED_UP)


def _statements(
    file: Path, name: str, within: Path, seen: set[tuple[Path, str]]
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return the top-level statements that the definition of this name needs, and the other statements of the file."""
    seen.add((file, name))
    try:
        tree = source.parse(file)
    except AssayError:
        return [], []
    needed = needed_by(tree, [s for s in tree.body if name in bound_by(s)])
    own = [s for s in tree.body if s in needed]
    for statement in list(own):
        for module, imported in _imports(file, statement, within):
            if (module, imported) not in seen:
                own += _statements(module, imported, within, seen)[0]
    return own, [s for s in tree.body if s not in needed]


def _imports(file: Path, statement: ast.stmt, within: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files within a folder that a statement imports from, each with the name imported."""
    if isinstance(statement, ast.ImportFrom) and statement.module:
        named = [(statement.module, alias.name) for alias in statement.names]
        level = statement.level
    elif isinstance(statement, ast.Import):
        named, level = [(alias.name, "") for alias in statement.names], 0
    else:
        return
    for module, name in named:
        if path := source.module_file(file, module, level, within):
            yield path, name


def _literals(statements: list[ast.stmt]) -> tuple[list[int], list[float]]:
    """Return integers and floats: those in comparisons, divisions, moduli and defaults first, then the rest."""
    telling: list[ast.AST] = []
    usual: list[ast.AST] = []
    compared: list[float] = []
    for node in (n for statement in statements for n in ast.walk(statement)):
        if isinstance(node, ast.Compare):
            telling.append(node)
            compared += _with_values(node)
        elif _divides(node):
            telling.append(node)
        elif isinstance(node, ast.arguments):
            telling += [default for name, default in defaults(node) if name not in _SCHEDULE]
        elif isinstance(node, ast.keyword) and node.arg not in (*_SCHEDULE, "tune"):
            usual.append(node.value)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            usual.append(node)
        elif isinstance(node, ast.Call):
            usual += node.args
    numbers = [folded(part) for node in (*telling, *usual) for part in ast.walk(node)]
    known = [n for n in numbers if n is not None and not isinstance(n, bool)]
    return [n for n in known if isinstance(n, int)], [*(n for n in known if isinstance(n, float)), *compared]


def _with_values(node: ast.Compare) -> list[float]:
    """Return the integers that a comparison may compare values with, as in `x > 20`: no powers of two, no lengths."""
    parts = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
    if any(_divides(p) or (isinstance(p, ast.Attribute) and p.attr in _LENGTHS) for p in parts):
        return []
    numbers = [folded(side) for side in (node.left, *node.comparators)]
    return [float(n) for n in numbers if type(n) is int and n & (n - 1)]


def assigned(statements: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """Return the names that these statements assign once, with their values: `N = 8`, `N: int = 8`, `N, M = 8, 4`."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for statement in statements:
        if isinstance(statement, ast.Assign):
            pairs += [(target, statement.value) for target in statement.targets]
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            pairs.append((statement.target, statement.value))
    for target, value in list(pairs):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs += zip(target.elts, value.elts, strict=True)
    named = [(target.id, value) for target, value in pairs if isinstance(target, ast.Name)]
    names = [name for name, _ in named]
    return {name: value for name, value in named if names.count(name) == 1}


def defaults(arguments: ast.arguments) -> list[tuple[str, ast.expr]]:
    """Return the parameters that have a default, each with its default."""
    plain = [*arguments.posonlyargs, *arguments.args]
    named = [
        *zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return [(parameter.arg, default) for parameter, default in named if default is not None]


def _divides(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.FloorDiv)


def folded(node: ast.AST) -> int | float | None:
    """Return the value of a literal or of an expression such as `1 << 20`, `2**20` or `4 * 1024`, else None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift | ast.Pow | ast.Mult):
        left, right = folded(node.left), folded(node.right)
        if isinstance(left, int) and isinstance(right, int) and 0 <= left <= _LARGEST and 0 <= right <= _LARGEST:
            if isinstance(node.op, ast.Mult):
                return left * right
            if right <= 40:
                return left << right if isinstance(node.op, ast.LShift) else left**right
    return None


def _cuda(file: Path) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the literals of a CUDA file, those on lines with a comparison first."""
    try:
        text = _CPP_NOISE.sub(" ", file.read_text(encoding="utf-8-sig", errors="replace"))
    except (OSError, ValueError):
        return (), ()
    lines = sorted(text.splitlines(), key=lambda line: not _CPP_COMPARISON.search(line))
    sizes: list[int] = []
    values: list[float] = []
    for line in lines:
        sizes += [1 << int(n) for n in _CPP_SHIFT.findall(line) if int(n) <= 24]
        for literal in _CPP_LITERAL.findall(line):
            plain = literal.replace("'", "")
            if re.fullmatch(r"0[xX][0-9a-fA-F]+", plain):
                sizes.append(int(plain, 16))
            elif re.fullmatch(r"\d+", plain):
                sizes.append(int(plain))
            else:
                values.append(float(plain))
    return tuple(dict.fromkeys(sizes)), tuple(dict.fromkeys(values))
