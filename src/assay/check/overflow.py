"""Finds where plain PyTorch is wrong because a value inside the reference leaves the range of its format: a square in
fp16 becomes infinite, a difference in int8 wraps around. The result may look ordinary, zero for instance, and PyTorch's
error there must not set the tolerance. The reference is evaluated once as it is, and once in float32 and int64."""

from __future__ import annotations

from functools import cache
from typing import Any

from assay.dtype import dtype
from assay.lazy import torch
from assay.workload import Workload


def in_wide_formats(workload: Workload, inputs: dict[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], str] | None:
    """Return the outputs of the reference in float32 and int64, rounded to their formats, and the arithmetic that
    leaves its range otherwise; None if none does."""
    op = workload.op
    attributes = dict(workload.attributes)
    with _watch()() as narrow:
        op.reference(*(inputs.get(n) for n in op.inputs), **attributes)
    with _watch()() as wide:
        results = op.reference(*(_wide(inputs[n]) if n in inputs else None for n in op.inputs), **attributes)
    what = _left_its_range(narrow.seen, wide.seen)
    if not what:
        return None
    results = results if isinstance(results, tuple) else (results,)
    numbers = [workload.dtype_of(t) for t in op.outputs.values()]
    rounded = [number.rounded(v.double()).to(number.torch) for number, v in zip(numbers, results, strict=True)]
    return dict(zip(op.outputs, rounded, strict=True)), what


def advice(what: str) -> str:
    """Return what a kernel does about an arithmetic that leaves its range; empty if it is a library that is wrong."""
    if what.endswith(_OVERFLOWS):
        return "compute in float32, and round only the result"
    return "compute in a wider integer" if what.endswith(_WRAPS) else ""


_OVERFLOWS, _WRAPS = "arithmetic, which overflows", "arithmetic, which wraps around"
_Seen = tuple[str, str, int, int]
"""Of one result: the operation, its dtype, how many values are not finite, and the sum of integers."""


_CONVERSION = "_to_copy"
"""Not needed where a value has the wide format already."""


def _left_its_range(narrow: list[_Seen], wide: list[_Seen]) -> str:
    """Return the arithmetic whose results leave their range in the narrow formats alone."""
    infinite = next((number for _, number, count, _ in narrow if count), "")
    if infinite and not any(count for _, _, count, _ in wide):
        return _overflows(infinite)
    narrow, wide = ([one for one in seen if one[0] != _CONVERSION] for seen in (narrow, wide))
    if [name for name, *_ in narrow] != [name for name, *_ in wide]:  # PyTorch takes another way in this format
        return ""
    for (_, number, count, total), (_, wider, least, right) in zip(narrow, wide, strict=True):
        if count > least:
            return _overflows(number)
        if total != right and number != wider:
            return f"{dtype(number).name} {_WRAPS}"
    return ""


def _overflows(number: str) -> str:
    return f"{dtype(number).name} {_OVERFLOWS}"


def _wide(value: torch.Tensor) -> torch.Tensor:
    if value.is_floating_point():
        return value.float() if value.itemsize < 4 else value
    return value if value.dtype == torch.bool else value.long()


@cache
def _watch() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        """Records of each result whether it left the range of its format."""

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Return False: nothing is compiled here, and PyTorch would import its compiler, which takes seconds."""
            return False

        def __init__(self) -> None:
            super().__init__()
            self.seen: list[_Seen] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            for value in result if isinstance(result, tuple | list) else (result,):
                if isinstance(value, torch.Tensor) and value.dtype != torch.bool and not value.is_complex():
                    self.seen.append((func.overloadpacket.__name__, str(value.dtype)[6:], *_range(value)))
            return result

    return Watch


def _range(value: torch.Tensor) -> tuple[int, int]:
    if not value.is_floating_point():
        return 0, int(value.sum(dtype=torch.int64))
    return value.numel() - int(value.double().isfinite().sum()), 0
