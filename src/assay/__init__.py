"""Assay: is a GPU kernel right, how fast is it against the limit, why, and does it matter?"""

import typing as _typing

from assay.errors import AssayError
from assay.kernel import kernel
from assay.op import INF, NAN, Attribute, Axis, Op, Random, Tensor, op
from assay.record import Record, Status
from assay.record import draw_with as _draw_with

if _typing.TYPE_CHECKING:
    from assay.bench import bench
    from assay.check import check, verify
    from assay.compare import compare
    from assay.compress.saved import load
    from assay.inspect import inspect
    from assay.machine import machine
    from assay.models.swap import swap
    from assay.report import report
    from assay.search import search
    from assay.selftest import selftest
    from assay.tune import tune

__version__ = "0.1.0"
__all__ = [
    "INF",
    "NAN",
    "AssayError",
    "Attribute",
    "Axis",
    "Op",
    "Random",
    "Record",
    "Status",
    "Tensor",
    "bench",
    "check",
    "compare",
    "inspect",
    "kernel",
    "load",
    "machine",
    "op",
    "report",
    "search",
    "selftest",
    "swap",
    "tune",
    "verify",
]

_VERBS = {
    "bench": "assay.bench",
    "check": "assay.check",
    "compare": "assay.compare",
    "inspect": "assay.inspect",
    "load": "assay.compress.saved",
    "machine": "assay.machine",
    "report": "assay.report",
    "search": "assay.search",
    "selftest": "assay.selftest",
    "swap": "assay.models.swap",
    "tune": "assay.tune",
    "verify": "assay.check",
}


def __getattr__(name: str) -> _typing.Any:
    """Import a verb when it is first used, so that `import assay` stays instant."""
    if name in _VERBS:
        from importlib import import_module

        return getattr(import_module(_VERBS[name]), name)
    raise AttributeError(f"module 'assay' has no attribute '{name}'")


def _drawn(record: Record) -> str:
    from assay.report.notebook import html_table

    return html_table([record])


_draw_with(_drawn)


def __dir__() -> list[str]:
    """Return the public names only, without modules that happen to be imported."""
    return [*__all__, "__version__"]
