"""Estimates the effect of float32 rounding on an op's formula by random rounding (Monte Carlo arithmetic).

The reference is evaluated in float64 several times; every arithmetic operation inside it is disturbed by a random error
of the size that float32 would make there. How far the results spread, element by element, is the error of an honest
float32 evaluation. An op whose reference only moves and selects values is not disturbed at all: it is exact. This is
used for every op that declares neither `magnitude` nor `roundings`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

from assay.dtype import dtype
from assay.float64 import exactly, widened
from assay.inputs import generate
from assay.lazy import torch
from assay.op import Op
from assay.workload import Workload

_Scale = Any
"""How far float32 would be off at most: a tensor, or a number for a share of each element; None if nothing is
rounded."""
_Known = dict[tuple[Any, ...], tuple["torch.Tensor", _Scale]]
"""Calls, with their results and how far those may be off."""
_STEPS = 1 << 15
"""Steps of the random errors on each side of zero."""
FEW, MANY = 6, 36
"""Samples for a first estimate, and for the one that decides before a kernel is called wrong."""
_HALF_ULP = 2.0**-24
"""The relative rounding error of float32."""
_MOVES = frozenset(
    """view _unsafe_view reshape expand permute t transpose slice select clone copy_ copy _to_copy detach alias
    cat stack index index_select gather scatter where flip roll unbind split split_with_sizes squeeze unsqueeze
    max min amax amin maximum minimum fmax fmin argmax argmin clamp clamp_min clamp_max relu abs neg sign sort
    topk eq ne lt le gt ge logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor
    bitwise_not isnan isinf isfinite masked_fill fill fill_ zeros ones full zeros_like ones_like full_like
    new_zeros new_ones new_full new_empty empty empty_like empty_strided arange embedding one_hot tril triu
    constant_pad_nd max_pool2d_with_indices max_pool3d_with_indices max_pool1d nonzero diagonal diag unfold
    as_strided repeat floor ceil round trunc cummax cummin median searchsorted bucketize histc bincount any all
    lift_fresh lift_fresh_copy scalar_tensor item _local_scalar_dense slice_scatter select_scatter index_put
    scatter_reduce permute_copy threshold reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
    narrow movedim unfold_copy""".split()  # noqa: SIM905
)
"""Operations of ATen that give each element the value of some input element, or an integer."""
_COMPARES = frozenset(
    """max min amax amin maximum minimum fmax fmin clamp clamp_min clamp_max relu sort topk cummax cummin median
    threshold max_pool1d max_pool2d_with_indices max_pool3d_with_indices scatter_reduce""".split()  # noqa: SIM905
)
"""Those of them that choose by comparing: 0 and −0 are equal to them, and either may be the result."""
_LINEAR = frozenset(
    """sum mean mm addmm bmm baddbmm convolution _convolution cumsum dot mv addmv scatter_add index_add
    avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d
    upsample_bilinear2d upsample_linear1d linear matmul einsum""".split()  # noqa: SIM905
)
"""Sums of products: they round at the scale of the sum of absolute values."""
_VARIANCES = frozenset({"var", "std", "var_mean", "std_mean"})
"""Decomposed here: PyTorch decomposes them into one primitive, which hides that the mean is rounded too."""
_ARITHMETIC = frozenset("add sub rsub mul div sqrt reciprocal square".split())  # noqa: SIM905
"""Rounded once. PyTorch would decompose them too, in Python and with the help of its compiler, which is slow."""
_FUNCTIONS = frozenset(
    """exp exp2 expm1 log log2 log10 log1p erf erfc erfinv tanh sin cos tan asin acos atan atan2 sinh cosh pow
    sigmoid rsqrt softplus logsigmoid mish digamma lgamma linalg_vector_norm norm prod cumprod logaddexp""".split()  # noqa: SIM905
)
"""Elementary functions, accurate to two ulps."""
_WHOLE = _ARITHMETIC | _LINEAR | _FUNCTIONS
"""Never decomposed."""


def spread(
    workload: Workload, inputs: dict[str, torch.Tensor], count: int, scale: float = 1.0, every: bool = False
) -> dict[str, torch.Tensor] | None:
    """Return the standard deviation of each output's elements in `count` samples, with errors of `scale` times
    float32's; None if nothing is rounded. `every`: see `samples`."""
    op = workload.op
    exact = _outputs(op, exactly(op.reference, map(inputs.get, op.inputs), dict(workload.attributes)))
    squares = {n: torch.zeros_like(v, dtype=torch.float64) for n, v in exact.items()}
    disturbed = False
    for results in samples(workload, inputs, count, scale, every):
        disturbed = True
        for name, value in results.items():
            off = (value.double() - exact[name].double()).nan_to_num(0.0, 0.0, 0.0)
            squares[name] += off * off
    return {n: (s / count).sqrt() for n, s in squares.items()} if disturbed else None


def samples(
    workload: Workload, inputs: dict[str, torch.Tensor], count: int, scale: float = 1.0, every: bool = False
) -> Iterator[dict[str, torch.Tensor]]:
    """Yield the outputs of disturbed evaluations, with errors of `scale` times float32's; none if nothing is rounded.
    `every`: products with powers of two are disturbed too. They are exact, but another formula for the same rounds
    there: y + (x − y) / 2 in place of x / 2 + y / 2."""
    op = workload.op
    wide = [widened(inputs[n]) if n in inputs else None for n in op.inputs]
    storages = frozenset(t.untyped_storage().data_ptr() for t in wide if t is not None)
    known: _Known = {}
    for sample in range(count):
        mode = _mode()(sample, storages, known, scale, every)
        with mode:
            results = exactly(op.reference, wide, dict(workload.attributes))
        if not mode.arithmetic:
            return
        yield _outputs(op, results)


_SIZES = (7, 4, 16, 2)
"""Lengths of axes at which a formula is looked at; the first that the contract allows."""


def rounds(op: Op, attributes: tuple[tuple[str, Any], ...]) -> bool:
    """True if the reference computes on a few ordinary values, though on others it may only move them: a running mean
    of one element is that element."""
    key = op.source, op.name, attributes
    if key not in _rounds:
        sizes = ({n: max(a.min, min(a.max, few)) for n, a in op.axes.items()} for few in _SIZES)
        tried = (Workload(op, tuple(axes.items()), dtype(op.dtypes[0]), attributes) for axes in sizes)
        workload = next((one for one in tried if one.allowed), None)
        _rounds[key] = workload is not None and any(samples(workload, generate(workload), 1))
    return _rounds[key]


_rounds: dict[Any, bool] = {}


def compares(workload: Workload, inputs: dict[str, torch.Tensor]) -> bool:
    """True if the reference chooses values by comparing them."""
    op = workload.op
    wide = [widened(inputs[n]) if n in inputs else None for n in op.inputs]
    with (mode := _mode()(0)):
        exactly(op.reference, wide, dict(workload.attributes))
    return bool(mode.compared)


def _outputs(op: Op, results: Any) -> dict[str, torch.Tensor]:
    results = results if isinstance(results, tuple) else (results,)
    return dict(zip(op.outputs, results, strict=True))


@cache
def _mode() -> Any:
    from torch._decomp import decomposition_table
    from torch.utils._python_dispatch import TorchDispatchMode

    class RandomRounding(TorchDispatchMode):
        """Disturbs the result of each operation. Composite operations are decomposed first."""

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Return False: nothing is compiled here, and PyTorch would import its compiler, which takes seconds."""
            return False

        def __init__(
            self,
            seed: int,
            inputs: frozenset[int] = frozenset(),
            known: _Known | None = None,
            times: float = 1.0,
            every: bool = False,
        ) -> None:
            """`inputs` are the addresses of tensors that no operation has disturbed. Results computed from them alone
            are the same in every sample and are kept in `known`."""
            super().__init__()
            self.arithmetic = self.compared = False
            self._rng, self._inputs, self._known = torch.Generator().manual_seed(seed), inputs, known
            self._times, self._every = times, every

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            name = func.overloadpacket.__name__
            self.compared |= name in _COMPARES
            if name in _MOVES or func.is_view:
                return func(*args, **kwargs)
            if name in _VARIANCES and func._overloadname == "correction":
                with self:
                    return _variance(name, *args, **kwargs)
            if name not in _WHOLE and func in decomposition_table:
                with self:
                    taken = decomposition_table[func](*args, **kwargs)
                if taken is not NotImplemented:
                    return taken
            key = self._key(func, args, kwargs)
            if self._known is not None and key in self._known:
                return self._disturbed(*self._known[key])
            result = func(*args, **kwargs)
            if isinstance(result, torch.Tensor):
                scale = _scale(name, func, args, kwargs, result, self._every)
                if self._known is not None and key is not None and scale is not None:
                    self._known[key] = result, scale
                return self._disturbed(result, scale)
            if isinstance(result, tuple | list):
                parts = [
                    self._disturbed(r, _scale("", func, args, kwargs, r, False)) if isinstance(r, torch.Tensor) else r
                    for r in result
                ]
                return type(result)(parts) if type(result) in (tuple, list) else tuple(parts)
            return result

        def _key(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, ...] | None:
            """Return the key of a call on undisturbed inputs alone; None for any other call."""
            parts: list[Any] = [func]
            for value in (*args, *kwargs.values()):
                if isinstance(value, torch.Tensor):
                    if value.untyped_storage().data_ptr() not in self._inputs:
                        return None
                    parts.append((value.data_ptr(), value.shape, value.stride(), value.dtype))
                elif isinstance(value, tuple | list) and any(map(_is_tensor, value)):
                    return None
                else:
                    parts.append(repr(value))
            return (*parts, *kwargs)

        def _disturbed(self, result: torch.Tensor, scale: _Scale) -> torch.Tensor:
            if scale is None:
                return result
            self.arithmetic = True
            noise = self._noise(result.shape)
            if isinstance(scale, float):  # 0, Inf and NaN stay what they are
                return noise.mul_(scale * self._times / _STEPS).add_(1).mul_(result)
            return torch.addcmul(result, noise, scale, value=self._times / _STEPS)

        def _noise(self, shape: Any) -> torch.Tensor:
            """Return integers from −_STEPS to _STEPS − 1. To draw four at a time is five times as fast as
            `torch.rand`."""
            count = math.prod(shape)
            drawn = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None, generator=self._rng)
            return drawn.view(torch.int16)[:count].view(shape).double()

    return RandomRounding


def _variance(name: str, x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    """Compute in two passes, as most kernels do."""
    dims = list(range(x.dim())) if dim is None or dim == [] else dim
    mean = x.mean(dims, keepdim=True)
    off = x - mean
    terms = x.numel() // max(1, mean.numel()) - (1 if correction is None else correction)
    var = (off * off).sum(dims, keepdim=keepdim) / terms
    value = var.sqrt() if name.startswith("std") else var
    return (value, mean if keepdim else x.mean(dims)) if name.endswith("mean") else value


def _scale(name: str, func: Any, args: Any, kwargs: Any, result: torch.Tensor, every: bool) -> _Scale:
    if not result.is_floating_point() or not result.numel():
        return None
    if name in ("sub", "add", "mul", "div", "rsub") and _without_rounding(name, args, every):
        return None
    if name in _LINEAR:
        absolute = func(*_absolute(args), **_absolute(kwargs)).abs()
        absolute.mul_(_HALF_ULP * (1 + 0.75 * math.log2(max(1, _terms(args, result)))) / 2)
        return absolute.nan_to_num_(0.0, 0.0, 0.0)
    return _HALF_ULP * 4 if name in _FUNCTIONS else _HALF_ULP


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _absolute(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.abs() if value.is_floating_point() else value
    if isinstance(value, dict):
        return {k: _absolute(v) for k, v in value.items()}
    return type(value)(_absolute(v) for v in value) if type(value) in (tuple, list) else value


def _without_rounding(name: str, args: Any, every: bool) -> bool:
    """True for adding zero, and for multiplying or dividing by a power of two, or by one alone, given as a number."""
    other = args[1] if len(args) > 1 else None
    if isinstance(other, bool | int | float) and other:
        return name in ("mul", "div") and (abs(other) == 1 if every else math.frexp(abs(other))[0] == 0.5)
    return other == 0 and name in ("add", "sub") if isinstance(other, int | float) else False


def _terms(args: Any, result: torch.Tensor) -> int:
    """Return how many terms one element of the result sums, at most."""
    tensors = [a for a in args if _is_tensor(a) and a.numel()]
    if len(tensors) <= 1:
        return tensors[0].numel() // max(1, min(result.numel(), tensors[0].numel())) if tensors else 1
    products = math.prod(a.numel() for a in tensors[-2:])
    return max(1, math.isqrt(products // max(1, result.numel())))  # (m·k)(k·n) / (m·n) = k²
