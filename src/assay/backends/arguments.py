"""Compares the arguments of a launch with the parameters of its kernel. The driver does not: it reads as many bytes as
the kernel declares from the address of each argument.

Only certain errors are refused. An unknown type fits everything of its size."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.backends import declaration
from assay.dtype import DType, dtype
from assay.errors import LaunchError, UsageError
from assay.isa.parameters import Parameter

POINTER, INTEGER, FLOAT, BYTES = "a pointer", "an integer", "a floating-point number", "bytes"
_FLOATS = ("fp64", "fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2")
_VALUES = {dtype(n).ctype: (FLOAT, dtype(n).itemsize) for n in _FLOATS}
for _name, _size in {"char": 1, "short": 2, "int": 4, "long": 8, "long long": 8}.items():
    _VALUES |= {_name: (INTEGER, _size), f"unsigned {_name}": (INTEGER, _size)}
_VALUES |= {"signed char": (INTEGER, 1), "bool": (INTEGER, 1)}
"""C++ types that are passed by value, spelt as a demangler spells them: their kind and their size in bytes."""
_ELEMENTS = {dtype(n).ctype: dtype(n) for n in (*_FLOATS, "int16", "int32", "int64", "bool")}
_ELEMENTS |= {"long": dtype("int64"), "__half2": dtype("fp16"), "__nv_bfloat162": dtype("bf16")}
"""C++ element types that determine how the elements are read. Bytes, unsigned integers and vectors are left out:
through pointers to those, kernels read elements of any type."""
_UNSIGNED = {
    "uint16": DType("uint16", "uint16", "unsigned short", 2),
    "uint32": DType("uint32", "uint32", "unsigned int", 4),
    "uint64": DType("uint64", "uint64", "unsigned long long", 8),
}


@dataclass(frozen=True)
class Argument:
    """What a launch passes for one parameter."""

    kind: str
    size: int
    """In bytes."""
    shown: str
    """Description for a message."""
    elements: DType | None = None
    """The elements of a tensor; None if unknown."""


def tensor(elements: Any) -> Argument:
    """Return the pointer to a tensor, given its dtype in torch or NumPy."""
    name = str(elements).removeprefix("torch.")
    try:
        known = _UNSIGNED.get(name) or dtype(name)
    except UsageError:
        return Argument(POINTER, 8, f"a tensor of {name}")
    return Argument(POINTER, 8, f"a tensor of {known}", known)


NULL = Argument(POINTER, 8, "None, which arrives as a null pointer")
INT = Argument(INTEGER, 8, "an int, which arrives as `long long`")
BOOL = Argument(INTEGER, 1, "a bool")


def scalar(value: Any) -> Argument | None:
    """Return a NumPy scalar or ctypes object, which is passed unchanged, as an argument; None for anything else."""
    if isinstance(value, ctypes.c_void_p):
        return Argument(POINTER, 8, "a c_void_p")
    if isinstance(value, ctypes.Structure | ctypes.Array):
        return Argument(BYTES, ctypes.sizeof(value), f"a {type(value).__name__}")
    if isinstance(value, ctypes._SimpleCData):
        kind = FLOAT if isinstance(value, ctypes.c_float | ctypes.c_double) else INTEGER
        return Argument(kind, ctypes.sizeof(value), f"a {type(value).__name__}")
    of = getattr(value, "dtype", None)
    if of is None or getattr(value, "shape", None) != ():
        return None
    kind = {"f": FLOAT, "i": INTEGER, "u": INTEGER, "b": INTEGER}.get(getattr(of, "kind", ""), BYTES)
    return Argument(kind, of.itemsize, f"a numpy.{of.name}")


def check(
    name: str,
    parameters: Sequence[Parameter] | None,
    arguments: Sequence[Argument | None],
    *,
    source: str = "",
    file: str = "",
    where: str = "",
) -> None:
    """Raise LaunchError unless every argument fits its parameter; an argument of None is unknown. `source` and `file`:
    the kernel's text and the name of its file. `where`: the place of the launch, if not the calling line of Python."""
    if parameters is None:
        return
    declared = declaration.find(source, name, len(parameters))
    if declared and not any(p.type for p in parameters):  # the symbol of a C function does not contain them
        parameters = _typed(parameters, declaration.types(declared, source, {*_VALUES, *_ELEMENTS}))
    words = declared.parameters if declared else tuple(p.type or f"{p.size} bytes" for p in parameters)
    place = f" ({file}:{declared.line})" if declared and file else ""
    if len(arguments) != len(parameters):
        passed = f"{_count(len(arguments), 'argument')} for {_count(len(parameters), 'parameter')}"
        if len(arguments) > len(parameters):
            raise LaunchError(
                f"{passed}: nothing in `{name}`{place} takes the last of those in the launch",
                where=where,
                fix=f"pass one argument for each of ({', '.join(words)})",
            )
        missing = f"`{words[len(arguments)]}`{place}, parameter {len(arguments) + 1} of `{name}`"
        raise LaunchError(
            f"{passed}: {missing}, gets nothing in the launch",
            where=where,
            fix=f"pass one argument for each of ({', '.join(words)})",
        )
    for number, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True), 1):
        if argument is not None and (problem := _misfit(parameter, argument)):
            raise LaunchError(
                f"{problem}: `{words[number - 1]}`{place}, parameter {number} of `{name}`, "
                f"gets {argument.shown}, in the launch",
                where=where,
                fix=_fix(parameter, argument, in_python=not where),
            )


def _typed(parameters: Sequence[Parameter], types: Sequence[str]) -> list[Parameter]:
    """Return the parameters with those types that have the size of what the machine code takes."""
    typed = [replace(p, type=t) for p, t in zip(parameters, types, strict=True)]
    return [new if _expected(new)[1] == p.size else p for p, new in zip(parameters, typed, strict=True)]


def _misfit(parameter: Parameter, argument: Argument) -> str:
    """Return why the argument does not fit; empty if it does, or may."""
    kind, size = _expected(parameter)
    if size and size != argument.size:
        return f"{_count(argument.size, 'byte')} for a parameter of {_count(size, 'byte')}"
    if BYTES in (kind, argument.kind):
        return ""
    if argument.kind == POINTER and argument.elements:
        if kind not in (POINTER, "") and not parameter.type.startswith("unsigned"):
            return f"a pointer for {kind}"
        return _misread(parameter, argument.elements)
    if FLOAT in (kind, argument.kind) and kind and kind != argument.kind:
        return f"{argument.kind} for {kind}"
    return ""  # an integer may be an address, and null may be a number


def _expected(parameter: Parameter) -> tuple[str, int]:
    """Return the kind that the parameter takes, empty if unknown, and its size, 0 if unknown."""
    if parameter.type.endswith("*"):
        return POINTER, 8
    if parameter.type in _VALUES:
        return _VALUES[parameter.type]
    if parameter.number in ("f32", "f64"):
        return FLOAT, parameter.size
    if parameter.number[:1] in ("u", "s") and parameter.size < 8:
        return INTEGER, parameter.size
    return (BYTES if parameter.number == "b8" or parameter.type else ""), parameter.size


def _misread(parameter: Parameter, held: DType) -> str:
    """Return why a pointer of this type must not point to such elements; empty if it may."""
    asked = _asked(parameter)
    if asked is None or asked == held or held.name in ("uint8", "int4"):  # uint8: work space for any type
        return ""
    if asked.is_float:
        # Integers of the same size carry the formats that NumPy does not have.
        fits = not held.is_float and held.itemsize == asked.itemsize <= 2
    elif asked.name == "bool":
        fits = held.itemsize == 1
    else:  # several small elements are read at once, and floats as their bits
        fits = held.is_float or held.itemsize <= 2 or held.itemsize == asked.itemsize
    return "" if fits else f"{held} elements would be read as `{asked.ctype}`"


def _fix(parameter: Parameter, argument: Argument, in_python: bool) -> str:
    kind, size = _expected(parameter)
    if argument.elements and kind == POINTER:
        asked = _asked(parameter)
        instead = f'@kernel(…, dtypes=["{asked}"])' if in_python else f"--dtype {asked}, if the op has it"
        return (
            f"take pointers to `{argument.elements.ctype}` in this dtype, as a template over the element type does, or "
            f"name the dtypes that the kernel takes: {instead}"
        )
    if argument is INT and kind == INTEGER:
        cast = f"pass numpy.int{8 * size}(…)" if in_python else "cast it in the launch comment: int(n)"
        return "declare it as `long long`" + (f", or {cast}" if in_python or size == 4 else "")
    if argument.kind == FLOAT and kind == FLOAT:
        taken = next((t for t, value in _VALUES.items() if value == (FLOAT, argument.size)), "float")
        declared = {4: "float", 8: "double"}.get(size, "")
        cast = f"pass numpy.float{8 * size}(…)" if in_python else f"cast it in the launch comment: {declared}(eps)"
        return f"declare it as `{taken}`" + (f", or {cast}" if in_python or declared else "")
    return "pass the arguments in the order and with the types that the kernel declares"


def _asked(parameter: Parameter) -> DType | None:
    """Return the format of the elements that the parameter points to; None if its type leaves it open."""
    return _ELEMENTS.get(parameter.type.removesuffix("*").removesuffix(" const"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
