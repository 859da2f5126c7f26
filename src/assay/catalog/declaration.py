"""Describes what an op declares: the signature of its kernels, and what each tensor, attribute and axis may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.dtype import dtype
from assay.op import Attribute, Axis, Op, Tensor

_UNLIMITED = Axis().max


@dataclass(frozen=True)
class Part:
    """One tensor, attribute or axis of an op."""

    name: str
    what: str
    """`input`, `output`, `attribute` or `axis`."""
    description: str


def signature(op: Op) -> str:
    """Return how a kernel is declared: inputs by position, then attributes and outputs by name. An optional output may
    be left out: `layernorm(x, weight, bias, *, eps, out, mean=None, rstd=None)`."""
    named = [*op.attributes, *(n if not t.optional else f"{n}=None" for n, t in op.outputs.items())]
    return f"{op.name}({', '.join([*op.inputs, '*', *named])})"


def parts(op: Op) -> list[Part]:
    """Return the parts of an op in the order of its declaration: inputs, attributes, outputs, axes."""
    aliases = {output: f"may be the memory of {name}" for output, name in op.aliases.items()}
    return [
        *(Part(name, "input", "; ".join(_input(tensor))) for name, tensor in op.inputs.items()),
        *(Part(name, "attribute", _attribute(a)) for name, a in op.attributes.items()),
        *(
            Part(name, "output", "; ".join(filter(None, [*_tensor(tensor), aliases.get(name, "")])))
            for name, tensor in op.outputs.items()
        ),
        *(Part(name, "axis", _axis(axis)) for name, axis in op.axes.items()),
    ]


def _tensor(tensor: Tensor) -> list[str]:
    shape = " × ".join(map(str, tensor.shape)) or "one element"
    layout = {False: "", True: "rows may lie apart", "rows": "rows may lie apart", "all": "any strides"}[tensor.strided]
    return list(filter(None, [shape, tensor.dtype or "", "optional" if tensor.optional else "", layout]))


def _input(tensor: Tensor) -> list[str]:
    if tensor.given is not None:
        values = "computed from the other inputs"
    elif tensor.index:
        values = f"0 to {tensor.index} − 1"
    else:
        low, high = tensor.range
        specials = tensor.specials if tensor.dtype is None or dtype(tensor.dtype).is_float else ()
        values = ", ".join([f"{low:g} to {high:g}", *map(_special, specials)])
    form = tensor.form if isinstance(tensor.form, str) else getattr(tensor.form, "__name__", "")
    return [*_tensor(tensor), values, *([form.replace("_", " ")] if form else [])]


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return {math.inf: "∞", -math.inf: "−∞"}.get(value, f"{value:g}")


def _attribute(attribute: Attribute) -> str:
    others = [c for c in attribute.choices if c != attribute.default]
    return f"{attribute.default:g}" + (f", also {', '.join(f'{c:g}' for c in others)}" if others else "")


def _axis(axis: Axis) -> str:
    least = f"at least {axis.min}"
    most = f", at most {axis.max}" if axis.max < _UNLIMITED else ""
    return f"{least}{most}, typically {axis.typical}"
