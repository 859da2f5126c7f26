"""Pairs of ops that one kernel computes, such as a LayerNorm whose result only a GELU reads. In nn.Sequential they are
found directly; in another module's forward torch.fx finds them, if a trace captures all that the forward does."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import ModuleType
from typing import Any

import torch
from torch import fx, nn

from assay import syntax
from assay.models.swap.sites import FUNCTIONS, Form
from assay.models.swap.substitute import Substitute
from assay.models.swap.wrapping import obstacle, original_class
from assay.swappable import Call

_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
"""Allowed statements. `+=` is not among them: it works in place on a tensor, while a trace makes a new one."""
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
"""Allowed expressions, which do not branch, loop or define a function."""


def tracing_obstacle(module: nn.Module) -> str:
    """Return why a trace of the module's forward may miss something; empty if it does not."""
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
    """Resolves the names in a forward."""

    module: nn.Module
    own: str
    """The name of `self`."""
    local: set[str]
    space: dict[str, Any]

    def frozen_in(self, statement: ast.stmt) -> str:
        """Return a name whose value a trace would freeze: one that is not a tensor or module held by this module, a
        local variable, or part of PyTorch. Empty if there is none."""
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


Forms = Mapping[nn.Module, Form]


@dataclass
class Pair:
    names: tuple[str, str]
    """Names in their parent."""
    modules: tuple[nn.Module, ...]
    """The modules; only one if the second is a function."""
    form: Form
    """Form of the first."""
    substitute: Substitute | None = None

    def __post_init__(self) -> None:
        self.kinds = tuple(original_class(m) for m in self.modules)

    def run(self, first: nn.Module, second: Callable[[Any], Any], x: torch.Tensor) -> Any:
        """Run the kernel for both, or else the two in turn. Both are passed with each call, so that a replica of the
        model runs its own."""
        assert self.substitute is not None and self.form.bind is not None
        bound = self._obstacle(first, second) or self.form.bind(first, x)
        result = self.substitute.refuse(bound) if isinstance(bound, str) else self.substitute.attempt(bound)
        return second(first(x)) if result is None else result

    def _obstacle(self, *modules: Any) -> str:
        for module, kind in zip(modules, self.kinds, strict=False):
            if not isinstance(module, kind):
                return "another module stands in its place"
            if (
                module._forward_pre_hooks
                or module._forward_hooks
                or module._backward_pre_hooks
                or module._backward_hooks
            ):
                return f"a hook watches {kind.__name__}"  # the kernel would not call it
        return ""


@dataclass
class Pairs:
    fusible: list[Pair] = field(default_factory=list)
    forward: Callable[..., Any] | None = None
    """Forward of their parent, with one call for each pair."""
    why: str = ""
    """Why the parent is left, although both ops are among its modules."""


def pairs(parent: nn.Module, forms: Forms, ops: list[str]) -> Pairs:
    held = [m for m in parent._modules.values() if m is not None]
    if not any(_fits(m, ops[0], forms) for m in held):
        return Pairs()
    sequence = original_class(parent).forward is nn.Sequential.forward
    made = _in_sequence(parent, forms, ops) if sequence else _in_code(parent, forms, ops)
    if made.why and not sequence and not any(_fits(m, ops[1], forms) for m in parent.modules()):
        return Pairs()  # it could not be traced, and has no module for the second op
    return made


def _fits(module: nn.Module | None, op: str, forms: Forms) -> bool:
    form = forms.get(module) if module is not None else None
    return form is not None and form.op == op and not form.why and form.bind is not None


def _in_sequence(parent: nn.Module, forms: Forms, ops: list[str]) -> Pairs:
    held = [(n, m) for n, m in parent._modules.items() if m is not None]  # the same module may occur twice
    starts: dict[str, Pair] = {}
    for (a, first), (b, second) in pairwise(held):
        if _fits(first, ops[0], forms) and _fits(second, ops[1], forms):
            starts[a] = Pair((a, b), (first, second), forms[first])
    if not starts or (why := obstacle(parent)):
        return Pairs(why=why if starts else "")

    def forward(self: Any, input: Any) -> Any:
        modules, skip = list(self._modules.items()), False
        for i, (name, module) in enumerate(modules):
            if skip:
                skip = False
            elif name in starts and i + 1 < len(modules):
                input, skip = starts[name].run(module, modules[i + 1][1], input), True
            else:
                input = module(input)
        return input

    return Pairs(list(starts.values()), forward)


class _OwnCode(fx.Tracer):
    """Traces one forward; the modules it calls are leaves of the graph."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True


def _in_code(parent: nn.Module, forms: Forms, ops: list[str]) -> Pairs:
    kind = original_class(parent)
    if kind is not type(parent):
        return Pairs(why="another swap is active on it")
    if why := obstacle(parent) or tracing_obstacle(parent):
        return Pairs(why=why)
    try:
        graph = _OwnCode().trace(parent)
    except Exception as error:
        return Pairs(why=f"torch.fx cannot follow {kind.__name__}.forward: {type(error).__name__}")
    modules = dict(parent.named_modules(remove_duplicate=False))
    fusible = [p for node in list(graph.nodes) if (p := _fuse_node(graph, node, modules, forms, ops)) is not None]
    if not fusible:
        return Pairs()
    code = graph.python_code("self")
    space = dict(code.globals)
    exec(compile(code.src, f"<{kind.__name__}.forward, fused>", "exec"), space)
    return Pairs(fusible, space["forward"])


def _fuse_node(graph: fx.Graph, node: fx.Node, modules: dict[str, nn.Module], forms: Forms, ops: list[str]) -> Any:
    """Replace two nodes by one, if the first's result goes only to the second."""
    first = modules.get(str(node.target)) if node.op == "call_module" else None
    if not _fits(first, ops[0], forms) or len(node.args) != 1 or node.kwargs or len(node.users) != 1:
        return None
    assert first is not None
    (user,) = node.users
    if user.op == "call_module" and user.args == (node,) and not user.kwargs:
        second = modules[str(user.target)]
        if not _fits(second, ops[1], forms):
            return None
        pair = Pair((str(node.target), str(user.target)), (first, second), forms[first])
    elif user.op == "call_function" and _computes(user, ops[1], node):
        pair = Pair((str(node.target), ops[1]), (first,), forms[first])
    else:
        return None
    function = user.target

    def both(first: Any, second: Any, x: Any) -> Any:
        return pair.run(first, second, x)

    def with_function(first: Any, x: Any) -> Any:
        return pair.run(first, function, x)

    with graph.inserting_before(user):
        own = [graph.create_node("get_attr", str(n.target)) for n in (node, user) if n.op == "call_module"]
        made = graph.call_function(both if len(own) == 2 else with_function, (*own, node.args[0]))
    user.replace_all_uses_with(made)
    graph.erase_node(user)
    graph.erase_node(node)
    return pair


def _computes(node: fx.Node, op: str, x: fx.Node) -> bool:
    """Return whether a function's node computes `op` of x with its arguments."""
    if node.target not in FUNCTIONS:
        return False
    try:
        bound: Any = FUNCTIONS[node.target][1](*node.args, **node.kwargs)
    except (TypeError, AttributeError):  # it uses the tensor, which is only a node here
        return False
    return isinstance(bound, Call) and bound.op == op and bound.tensors[0] is x
