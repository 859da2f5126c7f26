"""Is a module's forward a straight line? Then a trace of it is the whole truth: torch.fx freezes silently what a branch
on `x is None`, on `self.training` or on a flag would have decided anew."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from torch import nn

from assay import syntax
from assay.models.swap.wrapping import original_class

_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
"""Not `+=`: it works in place on a tensor, and a trace makes a new one."""
_EXPRESSIONS = (
    ast.Attribute,
    ast.BinOp,
    ast.Call,
    ast.Compare,
    ast.Constant,
    ast.Dict,
    ast.List,
    ast.Name,
    ast.Slice,
    ast.Starred,
    ast.Subscript,
    ast.Tuple,
    ast.UnaryOp,
)
"""Neither chooses, repeats, nor defines."""


def crooked(module: nn.Module) -> str:
    """What in its forward a trace could freeze; empty: nothing."""
    kind = original_class(module)
    name = f"{kind.__name__}.forward"
    try:
        (function,) = syntax.module(textwrap.dedent(inspect.getsource(kind.forward))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return f"{name} has no source to read"
    code = kind.forward.__code__ if inspect.isfunction(kind.forward) else None
    if not isinstance(function, ast.FunctionDef) or function.decorator_list or code is None or code.co_freevars:
        return f"{name} is decorated or uses variables around it"
    if "forward" in vars(module):
        return "somebody put another forward on this module"
    own = function.args.args[0].arg if function.args.args else ""
    names = _Names(module, own, {*code.co_varnames} - {own}, kind.forward.__globals__)
    for statement in function.body:
        if not isinstance(statement, _STATEMENTS):
            return f"{name} branches, loops or works in place"
        for node in ast.walk(statement):
            if isinstance(node, ast.expr) and not isinstance(node, _EXPRESSIONS):
                return f"{name} branches or loops (`{ast.unparse(node)}`)"
            if isinstance(node, ast.Is | ast.IsNot | ast.In | ast.NotIn):
                return f"{name} asks what a value is (`{ast.unparse(statement)}`)"
        if read := names.frozen_in(statement):
            return f"{name} reads {read}, which a trace would freeze"
    return ""


@dataclass
class _Names:
    """What the names in a forward stand for."""

    module: nn.Module
    own: str
    """`self`, however it is called."""
    local: set[str]
    space: dict[str, Any]

    def frozen_in(self, statement: ast.stmt) -> str:
        """A name that stands for anything but a tensor, a module of the module's, or PyTorch's own."""
        held = {*self.module._modules, *self.module._parameters, *self.module._buffers}
        followed = set()
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.own:
                followed.add(node.value)
                if node.attr not in held:
                    return f"{self.own}.{node.attr}"
        others = (n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and n not in followed)
        return next((n for n in others if n not in self.local and not self._is_torch(n)), "")

    def _is_torch(self, name: str) -> bool:
        value = self.space.get(name)
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        return f"{home}.".startswith("torch.")
