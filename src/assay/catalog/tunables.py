"""The tunables of a kernel: the parameters of its function that its op does not give."""

from collections.abc import Iterable, Mapping
from typing import Any

from assay.errors import UsageError
from assay.kernel import PREPARED, Kernel
from assay.op import Op


def tunables(kernel: Kernel, op: Op) -> list[str]:
    """Return the names of a kernel's tunables."""
    taken = {*op.inputs, *op.outputs, *op.attributes, *kernel.scratch}
    taken |= {PREPARED} if kernel.prepare else set()
    taken |= {*op.axes, *op.derived} if kernel.launches else set()  # only a launch comment passes sizes
    return [name for name in kernel.parameters if name not in taken]


def tuned(kernel: Kernel, op: Op, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are the kernel's own tunables. Launch comments may use any name."""
    own = tunables(kernel, op)
    return {name: value for name, value in parameters.items() if kernel.launches or name in own}


def refuse_unknown(choices: Iterable[tuple[Kernel, Op]], parameters: Mapping[str, Any]) -> None:
    """Raise UsageError for a parameter that none of these kernels has, since it would change nothing."""
    named = list(choices)
    for name in parameters:
        if named and not any(name in tuned(kernel, op, parameters) for kernel, op in named):
            has = dict.fromkeys(n for kernel, op in named for n in tunables(kernel, op))
            which = f"--param with {', '.join(has)}" if has else "leave out --param: it has none"
            raise UsageError(f"{named[0][0]} has no tunable '{name}'", fix=which)
    for name, value in parameters.items():
        for kernel, _ in named:
            _refuse_other_type(kernel, name, value)


def _refuse_other_type(kernel: Kernel, name: str, value: Any) -> None:
    """Raise UsageError for a value of another type than the kernel's choices: it would fail deep inside the kernel."""
    choices = kernel.tune.get(name)
    if choices and not any(
        isinstance(value, type(c)) or (isinstance(c, float) and isinstance(value, int)) for c in choices
    ):
        shown = ", ".join(map(repr, choices))
        raise UsageError(
            f"--param {name}={value}: {kernel} takes {type(choices[0]).__name__} there", fix=f"its own choices: {shown}"
        )
