"""Checks a kernel's signature against what its op gives."""

import ast
import contextlib

from assay.catalog.source import parse
from assay.errors import SourceError
from assay.kernel import PREPARED, Kernel
from assay.op import Op


def verify_signature(kernel: Kernel, op: Op) -> None:
    """Raise SourceError if a kernel's parameters do not fit what its op gives."""
    if kernel.file is None or kernel.launches:
        return
    where = f"{kernel.file}:{kernel.line}"
    if kernel.prepare:
        _verify_preparation(kernel, op, where)
    offered = {*op.inputs, *op.outputs, *op.attributes, *kernel.scratch, *kernel.tune}
    offered |= {PREPARED} if kernel.prepare else set()
    call = f"def {kernel.function}({', '.join(op.inputs)}, *, {', '.join([*op.attributes, *op.outputs])})"
    inputs = kernel.parameters[: len(op.inputs)]
    if len(kernel.parameters) < len(op.inputs) or set(inputs) & set(op.outputs):
        raise SourceError(
            f"{op.name} has {len(op.inputs)} inputs ({', '.join(op.inputs)}); "
            f"{kernel.function} takes ({', '.join(kernel.parameters)})",
            where=where,
            fix=f"write it as {call}",
        )
    for name, t in op.outputs.items():
        if not t.optional and not kernel.returns and name not in kernel.parameters:
            raise SourceError(
                f"{kernel.function} does not take the output `{name}`",
                where=where,
                fix=f"write it as {call}, or declare returns=True",
            )
    unknown = [p for p in kernel.parameters[len(op.inputs) :] if p not in offered and p not in with_default(kernel)]
    if unknown:
        raise SourceError(
            f"{kernel.function} asks for `{unknown[0]}`, which {op.name} does not give",
            where=where,
            fix=f"it gives: {', '.join(sorted(offered))}",
        )


def _verify_preparation(kernel: Kernel, op: Op, where: str) -> None:
    """Raise SourceError for a preparation that is not a peer's, has nothing to prepare, or cannot be called."""
    if not kernel.needs:
        raise SourceError(
            f"{kernel.function} prepares its inputs, which only a peer may",
            where=where,
            fix="name the package whose kernel it calls: needs=…; or leave out prepare",
        )
    if not any(t.constant for t in op.inputs.values()):
        raise SourceError(
            f"{op.name} has no constant input that {kernel.function} could prepare",
            where=where,
            fix="declare in the op which inputs stay from call to call: Tensor(…, constant=True)",
        )
    count = len(op.inputs)
    if kernel.prepares[:count] != tuple(op.inputs) or not {*kernel.prepares[count:]} <= {*op.attributes}:
        raise SourceError(
            f"prepare names `{kernel.prepare}`, which is no function of this file that {op.name}'s inputs fit",
            where=where,
            fix=f"define it as def {kernel.prepare}({', '.join(op.inputs)}, *, {', '.join(op.attributes)})",
        )
    if PREPARED not in kernel.parameters:
        raise SourceError(
            f"{kernel.function} does not take what `{kernel.prepare}` makes",
            where=where,
            fix=f"add the parameter `{PREPARED}` to {kernel.function}",
        )


def with_default(kernel: Kernel) -> set[str]:
    """Return the parameters of a kernel's function that have a default; none if it has no Python function."""
    if kernel.file is None or kernel.launches:
        return set()
    for node in ast.walk(parse(kernel.file)):
        if isinstance(node, ast.FunctionDef) and node.name == kernel.function and node.lineno == kernel.line:
            a = node.args
            plain = [*a.posonlyargs, *a.args]
            return {p.arg for p in plain[len(plain) - len(a.defaults) :]} | {
                p.arg for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None
            }
    return set()


def defaults(kernel: Kernel) -> dict[str, object]:
    """Return the values that parameters with a literal default take, as a derived variant fixes them; nothing for a
    kernel without a Python function of its own."""
    if kernel.file is None or kernel.launches:
        return {}
    values: dict[str, object] = {}
    for node in ast.walk(parse(kernel.file)):
        if isinstance(node, ast.FunctionDef) and node.name == kernel.function and node.lineno == kernel.line:
            a = node.args
            plain = [*a.posonlyargs, *a.args]
            pairs = [*zip(plain[len(plain) - len(a.defaults) :], a.defaults, strict=True)]
            pairs += [(p, d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None]
            for parameter, default in pairs:
                with contextlib.suppress(ValueError):
                    values[parameter.arg] = ast.literal_eval(default)
    return values | dict(kernel.fixed)
