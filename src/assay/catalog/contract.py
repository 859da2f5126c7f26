"""Verifies a declared op: types, names and the reference's signature, without evaluating anything."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

from assay.dtype import DType, dtype
from assay.errors import SourceError, UsageError
from assay.op import Attribute, Axis, Op, Tensor
from assay.workload import PARTS


def verify_op(op: Op, where: str) -> None:
    """Raise SourceError if an op's declaration contradicts itself; `where` is the line of its decorator."""
    for what, fix in _problems(op):
        raise SourceError(f"op {op.name}: {what}", where=where, fix=fix)


def _problems(op: Op) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a declaration, and how to fix it. Only the first item is valid: the later ones assume
    that everything before them is right."""
    if not re.fullmatch(r"\w+", op.name):
        yield f"'{op.name}' is not a valid name for an op", "use letters, digits and underscores"
    axes: Mapping[str, object] = op.axes  # its author may have written anything
    attributes: Mapping[str, object] = op.attributes
    for name, axis in axes.items():
        if not isinstance(axis, Axis):
            yield f"axis '{name}' is {axis!r}, which is no Axis", f'write axes={{"{name}": Axis(typical=1024)}}'
        elif not all(isinstance(size, int) for size in (axis.min, axis.max, axis.typical)):
            yield f"axis '{name}' has sizes that are no whole numbers", "write Axis(min=1, max=4096, typical=1024)"
        elif not 0 <= axis.min <= axis.max:
            yield (
                f"axis '{name}' reaches from {axis.min} to {axis.max}",
                "write Axis(min=…, max=…) with 0 ≤ min ≤ max",
            )
        elif not axis.min <= axis.typical <= axis.max:
            yield (
                f"axis '{name}' is typically {axis.typical}, outside its own {axis.min}..{axis.max}",
                "choose typical= between min and max",
            )
    for name in (*op.axes, *op.attributes):
        if name in PARTS:
            yield f"'{name}' is a part of every workload already", f"give it another name, e.g. {name}_"
    if not op.axes:
        yield "it has no axis, so there is nothing to choose sizes of", 'declare one: axes={"n": Axis()}'
    if not op.outputs:
        yield "it has no outputs", 'declare at least one: outputs={"out": Tensor("n")}'
    for name, attribute in attributes.items():
        if not isinstance(attribute, Attribute):
            yield (
                f"attribute '{name}' is {attribute!r}, which is no Attribute",
                f'write attributes={{"{name}": Attribute(1e-5)}}',
            )
    yield from _tensor_problems(op, "input", op.inputs)
    yield from _tensor_problems(op, "output", op.outputs)
    yield from _input_problems(op)
    for group, names in (("inputs", op.inputs), ("attributes", op.attributes), ("axes", op.axes)):
        if both := sorted(set(names) & set(op.outputs)):
            yield f"'{both[0]}' is an output and stands among the {group} too", "give one of them another name"
    for result, source in op.aliases.items():
        if result not in op.outputs or source not in op.inputs:
            yield f"aliases names {result} → {source}", "map an output's name to an input's"
    if op.independent and op.independent not in op.axes:
        yield f"independent names '{op.independent}', which is no axis", f"one of: {', '.join(op.axes)}"
    yield from _call_problems(op, "the reference", op.reference, op.attributes)
    if op.magnitude is not None:
        yield from _call_problems(op, "magnitude", op.magnitude, op.attributes)
    if op.half_magnitude is not None:
        yield from _call_problems(op, "half_magnitude", op.half_magnitude, op.attributes)
    if op.random is not None:
        if op.random.seed not in op.attributes:
            yield (
                f"random names the seed '{op.random.seed}', which is no attribute",
                f'declare it: attributes={{"{op.random.seed}": Attribute(0, (0, 1, 12345))}}',
            )
        yield from _call_problems(op, "outcomes", op.random.outcomes, [a for a in op.attributes if a != op.random.seed])


def _tensor_problems(op: Op, kind: str, tensors: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            yield f"{kind} '{name}' is {tensor!r}, which is no Tensor", f'write {kind}s={{"{name}": Tensor("n")}}'
            return
        for size in tensor.shape:
            if isinstance(size, str) and size not in op.axes and size not in op.derived:
                fix = f"declare it in axes, or use one of: {', '.join([*op.axes, *op.derived])}"
                if size in op.attributes:
                    fix = f'an attribute gives a length through derived={{"len_{size}": lambda w: w.{size}}}'
                yield f"{kind} '{name}' has the axis '{size}', which is not declared", fix
            elif not isinstance(size, str) and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
                yield f"{kind} '{name}' has the size {size!r}", "a size is an axis's name or a whole number"
        if not _is_range(tensor.range):
            yield (
                f"{kind} '{name}' has the range {tensor.range!r}, which holds no numbers",
                "write two numbers, the smaller one first: range=(-1, 1)",
            )
        if tensor.dtype is not None:
            try:
                dtype(tensor.dtype)
            except UsageError as problem:
                yield f"{kind} '{name}': {problem.what}", problem.fix


def _input_problems(op: Op) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with how inputs are drawn, or computed from others."""
    drawn = [name for name, tensor in op.inputs.items() if tensor.given is None]
    known = [*drawn, *op.attributes]
    for name, tensor in op.inputs.items():
        if tensor.given is not None:
            yield from _given_problems(name, tensor.given, known)
            known.append(name)
            continue
        if tensor.index:
            if tensor.index not in (*op.axes, *op.derived, *op.attributes):
                yield (
                    f"input '{name}' indexes '{tensor.index}', which is no axis",
                    f"one of: {', '.join([*op.axes, *op.derived])}",
                )
            continue
        formats = [tensor.dtype] if tensor.dtype else op.dtypes
        if not any(_holds(dtype(number), tensor.range) for number in formats):
            yield (
                f"input '{name}' has the range {tensor.range!r}, and {', '.join(formats)} has no number in it",
                "declare a range that meets the format's; it may be wider",
            )


def _given_problems(name: str, function: Any, known: list[str]) -> Iterator[tuple[str, str]]:
    code = getattr(function, "__code__", None)
    if code is None:
        yield f"input '{name}' is given by {function!r}, which is no function of Python", "write a def or a lambda"
        return
    asked = code.co_varnames[: code.co_argcount]
    if unknown := [parameter for parameter in asked if parameter not in known]:
        yield (
            f"input '{name}' is given by a function of '{unknown[0]}', which is not known then",
            f"it asks by name for drawn inputs, given inputs declared above it, and attributes: {', '.join(known)}",
        )


def _is_range(value: Any) -> bool:
    numbers = isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(n, Real) for n in value)
    return numbers and bool(value[0] <= value[1])


def _holds(number: DType, wanted: tuple[float, float]) -> bool:
    """Return whether the format has a value in the range, as far as its ends tell."""
    least, most = number.integers or (-number.max, number.max)
    return wanted[0] <= most and wanted[1] >= least


def _call_problems(op: Op, what: str, function: Any, attributes: Iterable[str]) -> Iterator[tuple[str, str]]:
    if not callable(function):
        yield f"{what} is {function!r}, which cannot be called", "write a function of the op's inputs"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a builtin without a signature
    try:
        signature.bind(*op.inputs, **dict.fromkeys(attributes))
    except TypeError as problem:
        call = f"({', '.join([*op.inputs, *(f'{a}=…' for a in attributes)])})"
        yield f"{what} takes {signature}, but it is called as {call}: {problem}", f"let it take {call}"
