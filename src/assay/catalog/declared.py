"""The arguments of `@kernel(...)` in a file, read from literals and constants of its module, and verified one by
one."""

import ast
import copy
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from assay.catalog import constraint
from assay.catalog.tunables import tunables
from assay.dtype import dtype
from assay.errors import SourceError, UsageError
from assay.kernel import BACKENDS, Address, Kernel
from assay.op import Op

OP = r"(?:(?P<file>.+\.py):)?(?P<name>\w+)"
"""The name of an op: `gelu`, or `my_op.py:row_sum` for one that this file declares."""
_EXAMPLE = 'write it as @kernel("gelu", tune={"BLOCK": [512, 1024]})'


def _names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)


def _lists(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) for k in value)


def _dicts(value: Any) -> bool:
    return _lists(value) and all(_lists(v) and v for v in value.values())


_WORDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "op": (lambda v: isinstance(v, str), 'the name of an op, e.g. "gelu" or "my_op.py:row_sum"'),
    "backend": (lambda v: isinstance(v, str), 'a language, e.g. "triton"'),
    "variant": (lambda v: isinstance(v, str), 'a word, e.g. "two_pass"'),
    "variants": (_dicts, 'a dict of dicts, e.g. {"parallel": {"parallel": True}}'),
    "tune": (_lists, 'a dict of lists, e.g. {"BLOCK": [512, 1024]}'),
    "scratch": (_lists, 'a dict of lists, dtype first, e.g. {"partial": ["fp32", "rows"]}'),
    "dtypes": (_names, 'a list of dtypes, e.g. ["fp32", "bf16"]'),
    "returns": (lambda v: isinstance(v, bool), "True or False"),
    "needs": (lambda v: isinstance(v, str), 'a distribution, e.g. "liger-kernel"'),
    "prepare": (lambda v: isinstance(v, str), 'the name of a function of the same file, e.g. "dequantize"'),
    "requires": (_names, 'a list of inputs, e.g. ["weight"]'),
    "most": (_lists, 'a dict of axes and sizes, e.g. {"cols": 65536}'),
    "expects": (_lists, 'a dict of gates, e.g. {"spills": 0}'),
    "fits": (lambda v: isinstance(v, str), 'a constraint as text, e.g. "BLOCK >= 32 * num_warps"'),
}
"""For each parameter of @kernel: a test of the value's type, and a description of that type."""


class _Constants(ast.NodeTransformer):
    """Replaces names by the literals that a module assigns to them, once and at its top level."""

    def __init__(self, tree: ast.Module) -> None:
        stores = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
        self._values = {
            node.targets[0].id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
            if stores.count(node.targets[0].id) == 1
        }

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._values.get(node.id)
        return node if value is None or isinstance(value, ast.Name) else value

    def literal(self, node: ast.expr) -> Any:
        return ast.literal_eval(self.visit(copy.deepcopy(node)))


def declaration(call: ast.Call, tree: ast.Module, where: str) -> dict[str, Any]:
    """Return the decorator's arguments by name; `op` is always among them."""
    constants = _Constants(tree)
    try:
        arguments = {k.arg: constants.literal(k.value) for k in call.keywords if k.arg}
        positional = [constants.literal(a) for a in call.args]
    except (ValueError, TypeError):
        raise SourceError(
            "@kernel takes literals, and constants of its module: it is read without running the file",
            where=where,
            fix=_EXAMPLE,
        ) from None
    if len(arguments) < len(call.keywords):
        raise SourceError("@kernel(**…) cannot be read without running the file", where=where, fix=_EXAMPLE)
    if len(positional) > 1:
        raise SourceError(
            f"@kernel takes the op's name and then names its parameters; it was given {len(positional)} values",
            where=where,
            fix=f'write {positional[1]!r} with its parameter\'s name, e.g. backend="triton"',
        )
    if positional:
        arguments = {"op": positional[0], **arguments}
    if "op" not in arguments:
        raise SourceError("@kernel() does not say which op is computed", where=where, fix='write @kernel("gelu")')
    for name, value in arguments.items():
        _verify_word(name, value, where)
    return arguments


def _verify_word(name: str, value: Any, where: str) -> None:
    if name not in _WORDS:
        near = get_close_matches(name, _WORDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has: {', '.join(_WORDS)}"
        raise SourceError(f"@kernel has no parameter '{name}'", where=where, fix=hint)
    right, kind = _WORDS[name]
    if not right(value):
        short = kind.partition(",")[0]
        raise SourceError(f"{name}={value!r} in @kernel is not {short}", where=where, fix=f"{name} is {kind}")
    if name in ("op", "variant") and value and not re.fullmatch(r"\w+" if name == "variant" else OP, value):
        raise SourceError(
            f"{name}={value!r}: a part of an address is made of letters, digits and underscores",
            where=where,
            fix=f'e.g. "{re.sub(r"[^0-9a-zA-Z_]+", "_", value).strip("_") or "gelu"}"',
        )
    if name == "variants":
        for variant in value:
            _verify_word("variant", variant, where)
    if name == "backend" and value and value not in BACKENDS:
        raise SourceError(f"no backend called '{value}'", where=where, fix=f"one of: {', '.join(BACKENDS)}")
    if name == "dtypes":
        for number in value:
            _verify_dtype(number, "dtypes", where)
    if name == "tune":
        for parameter, choices in value.items():
            if not isinstance(choices, list | tuple) or not choices:
                raise SourceError(
                    f"tune: '{parameter}' has the choices {choices!r}, which is no list of values",
                    where=where,
                    fix=f'list what may be tried: tune={{"{parameter}": [1, 2]}}',
                )
    if name == "fits" and value:
        constraint.verify(value, where)
    if name == "scratch":
        for tensor, parts in value.items():
            if not isinstance(parts, list | tuple) or len(parts) < 2 or not isinstance(parts[0], str):
                raise SourceError(
                    f"scratch: '{tensor}' is declared as {parts!r}, which is no dtype followed by sizes",
                    where=where,
                    fix=f'write scratch={{"{tensor}": ["fp32", "rows"]}}',
                )
            _verify_dtype(parts[0], f"scratch '{tensor}'", where)
    if name == "most":
        for axis, size in value.items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise SourceError(
                    f"most: '{axis}' may be at most {size!r}, which is no size",
                    where=where,
                    fix=f'write most={{"{axis}": 65536}}',
                )


def _verify_dtype(name: str, whose: str, where: str) -> None:
    try:
        dtype(name)
    except UsageError as problem:
        raise SourceError(f"{whose}: {problem.what}", where=where, fix=problem.fix) from None


def verify_against(kernel: Kernel, op: Op) -> None:
    """Raise SourceError if a declaration names something the op does not have."""
    where = f"{kernel.file}:{kernel.line}"
    for word, names, kind, known in (
        ("most", kernel.most, "axis", [*op.axes]),
        ("requires", kernel.requires, "input", [*op.inputs]),
    ):
        if unknown := [name for name in names if name not in known]:
            raise SourceError(
                f"{word} names '{unknown[0]}', which is no {kind} of {op.name}",
                where=where,
                fix=f"its {'axes' if kind == 'axis' else 'inputs'}: {', '.join(known)}",
            )
    own = tunables(kernel, op)
    if unknown := [name for name in kernel.tune if name not in own]:
        first = next(iter(kernel.tune[unknown[0]]))
        raise SourceError(
            f"tune names '{unknown[0]}', which is no parameter of {kernel.function} that may be tuned",
            where=where,
            fix=f"it has: {', '.join(own)}" if own else f"add it to the signature: {unknown[0]}={first!r}",
        )
    constraint.verify_names(kernel.fits, [*kernel.tune, *op.axes, *op.attributes], where)
    for name, (_, *sizes) in kernel.scratch.items():
        for size in sizes:
            if isinstance(size, bool) or not (isinstance(size, int) or size in op.axes or size in op.derived):
                raise SourceError(
                    f"scratch: '{name}' has the size {size!r}, which {op.name} does not have",
                    where=where,
                    fix=f"a number, or one of: {', '.join([*op.axes, *op.derived])}",
                )
        if name in {*op.inputs, *op.outputs, *op.attributes}:
            raise SourceError(f"scratch: {op.name} has a '{name}' of its own", where=where, fix="choose another name")
    if kernel.dtypes and not {dtype(name).name for name in kernel.dtypes} & set(op.dtypes):
        raise SourceError(
            f"{op.name} is declared for {', '.join(op.dtypes)}, the kernel for {', '.join(kernel.dtypes)} only",
            where=where,
            fix="give both a dtype in common",
        )


def addressed(arguments: dict[str, Any], function: str, backend: str, variant: str, library: bool) -> Address:
    """Return the address that a declaration gives. In a user's file the variant defaults to the function's name."""
    op = arguments["op"].rpartition(":")[2]
    own = "" if function == op or library else function
    return Address(op, backend, arguments.get("variant") or variant or own)
