"""`and`, `or`, `not` and conditions. Triton compiles `a and b` on blocks to an elementwise operation; in the
interpreter Python decides by the first operand, and a block of several elements always counts as true. Here `and`,
`or` and `not` are elementwise, and a condition on a block is refused, as the compiler refuses it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

from triton.language import core
from triton.runtime import interpreter


def patch() -> None:
    module: Any = interpreter
    module.interpreter_and, module.interpreter_or, module.interpreter_not = _and, _or, _not
    transformer: Any = interpreter.ASTTransformer
    transformer.visit_BoolOp = _bool_op
    transformer.visit_UnaryOp = _unary_op
    assign = transformer.visit_Assign

    def visit_assign(self: Any, node: Any) -> Any:
        node.value = self.visit(node.value)  # Triton's own visitor does not visit the value
        return assign(self, node)

    transformer.visit_Assign = visit_assign
    original = interpreter._patch_lang_tensor

    def patch_tensor(tensor: Any, *scope: Any) -> None:
        original(tensor, *scope)
        tensor.__bool__ = _truth

    module._patch_lang_tensor = patch_tensor


def _truth(tensor: Any) -> bool:
    if _caller() == "triton.language.semantic":
        return True  # it asks whether a mask or an `other` is present, also of a scalar 0.0
    data = tensor.handle.data
    if data.size == 1:
        return bool(data.reshape(-1)[0])
    if _caller().split(".")[0] == "triton":
        return True
    raise ValueError("a condition on a block of several elements: the compiler refuses it too; use tl.where")


def _caller() -> str:
    """Return the module that tests a tensor for its truth."""
    name: str = sys._getframe(2).f_globals.get("__name__", "")
    return name


def _bool_op(self: Any, node: Any) -> Any:
    self.generic_visit(node)
    name = "interpreter_and" if isinstance(node.op, ast.And) else "interpreter_or"
    whole = node.values[0]
    for value in node.values[1:]:
        arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        later = ast.Lambda(args=arguments, body=value)
        whole = ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[whole, later], keywords=[])
    return ast.copy_location(whole, node)


def _unary_op(self: Any, node: Any) -> Any:
    self.generic_visit(node)
    if not isinstance(node.op, ast.Not):
        return node
    call = ast.Call(func=ast.Name(id="interpreter_not", ctx=ast.Load()), args=[node.operand], keywords=[])
    return ast.copy_location(call, node)


def _and(left: Any, right: Callable[[], Any]) -> Any:
    if not isinstance(left, core.tensor):
        return left and right()
    return _elementwise("logical_and", left, right())


def _or(left: Any, right: Callable[[], Any]) -> Any:
    if not isinstance(left, core.tensor):
        return left or right()
    return _elementwise("logical_or", left, right())


def _not(value: Any) -> Any:
    if isinstance(value, core.tensor) and value.handle.data.size > 1:
        return interpreter.interpreter_semantic.not_(value)
    return not value


def _elementwise(name: str, left: Any, right: Any) -> Any:
    """Combine two evaluated operands, as on the GPU. With a constant on the right, the result is one of them."""
    if not isinstance(right, core.tensor):
        return left if bool(right) == (name == "logical_and") else right
    if left.handle.data.size == 1 and right.handle.data.size == 1:
        return (left and right) if name == "logical_and" else (left or right)
    return getattr(interpreter.interpreter_semantic, name)(left, right)
