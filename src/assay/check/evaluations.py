"""Honest evaluations of an op's reference in float32, in other orders and by other formulas than PyTorch's.

A dispatch mode decomposes composite operations and evaluates sums, products of matrices, variances, exponentials and
divisions as kernels do: serially, in pairs, in lanes, with compensation, by Welford's update, as exp2, by a reciprocal,
on tensor cores. All of these are correct and must pass."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from assay.check import float32
from assay.dtype import DType
from assay.lazy import np, torch
from assay.workload import Workload

REDUCTIONS = ("plain", "serial", "reversed", "pairwise", "lanes 32", "lanes 128", "lanes 1024", "kahan")
_HALF = 2
"""Bytes of a number that tensor cores multiply exactly."""


@dataclass(frozen=True)
class Variation:
    reduction: str = "plain"
    variance: str = "two passes"
    """Or `welford`, which merges blocks, or `welford by terms`, which adds (x − old mean)·(x − new mean) for each."""
    exponential: str = "exp"
    """Or `exp2`, of the argument times log₂e."""
    division: str = "division"
    """Or `reciprocal`: times 1/b."""
    products: str = "rounded"
    """Or `fused`: elementwise products and sums keep their bits until the next reduction, as with FMA."""
    matrices: str = "rounded"
    """Or `truncated`: products of matrices add few terms at a time, without rounding, and then cut off the bits that
    float32 has no room for, as tensor cores do (Fasi, Higham, Mikaitis, Pranesh: “Numerical behavior of NVIDIA tensor
    cores”, 2021)."""
    means: str = "summed"
    """Or `scaled`: the terms are scaled first. Sums that are not divided by anything stay as they are."""

    @property
    def orders_products(self) -> bool:
        """True if products of matrices are added in another order than PyTorch's."""
        return self.reduction != "plain" or self.matrices != "rounded"

    def __str__(self) -> str:
        return ", ".join(getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default) or "plain"


def variations(number: DType) -> Iterator[Variation]:
    """Yield each reduction with each exponential and division, with Welford's variance, and with fused products; in 16
    bits also products on tensor cores."""
    for reduction in REDUCTIONS:
        for exponential, division in itertools.product(("exp", "exp2"), ("division", "reciprocal")):
            yield Variation(reduction, exponential=exponential, division=division)
        yield Variation(reduction, variance="welford")
        yield Variation(reduction, variance="welford by terms")
        yield Variation(reduction, products="fused")
    if number.itemsize == _HALF:
        yield Variation(matrices="truncated")


def others(workload: Workload, inputs: dict[str, torch.Tensor]) -> list[dict[str, torch.Tensor]]:
    """Return the outputs of the few variations that lose the most; none for an op that cannot be evaluated this way. A
    single accumulator for a whole row starts at several places, since one order alone may be right by chance, and for
    means it also adds scaled terms."""
    some = (
        Variation("serial"),
        Variation("serial", exponential="exp2", division="reciprocal"),
        Variation("serial from 1/3"),
        Variation("serial from 2/3"),
        Variation("serial", means="scaled"),
        Variation("backwards", products="fused"),
        Variation("reversed", variance="welford"),
        Variation("serial", variance="welford"),
        Variation("serial", variance="welford by terms"),
        Variation("reversed", variance="welford by terms", division="reciprocal"),
        *([Variation(matrices="truncated")] if workload.dtype.itemsize == _HALF else []),
    )
    try:
        return [evaluate(workload, inputs, how) for how in some]
    except (RuntimeError, TypeError, NotImplementedError, AttributeError):
        return []


def evaluate(workload: Workload, inputs: dict[str, torch.Tensor], how: Variation) -> dict[str, torch.Tensor]:
    """Return the outputs in their dtypes, computed in float32 and rounded once."""
    op = workload.op
    wide = [
        (inputs[n].float() if inputs[n].is_floating_point() else inputs[n]) if n in inputs else None for n in op.inputs
    ]
    with _mode()(how):
        results = op.reference(*wide, **dict(workload.attributes))
    results = results if isinstance(results, tuple) else (results,)
    named = zip(op.outputs.items(), results, strict=True)
    return {
        name: torch.as_tensor(value).float().to(workload.dtype_of(t).torch)
        if value.is_floating_point()
        else value.to(workload.dtype_of(t).torch)
        for (name, t), value in named
    }


@cache
def _mode() -> Any:
    from torch._decomp import decomposition_table
    from torch.utils._python_dispatch import TorchDispatchMode

    class Honest(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Return False: nothing is compiled here, and PyTorch would import its compiler, which takes seconds."""
            return False

        def __init__(self, how: Variation) -> None:
            super().__init__()
            self.how = how
            self.sums: list[tuple[torch.Tensor, torch.Tensor]] = []
            """Sums, each with the sum of the scaled terms, which is used if a division makes it a mean."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            name = func.overloadpacket.__name__
            x = args[0] if args and isinstance(args[0], torch.Tensor) and args[0].is_floating_point() else None
            own = getattr(self, f"_{name}", None) if x is not None and x.numel() else None
            if own is not None:
                made = own(*args, **kwargs)
                if made is not None:
                    return made
            if name not in _KEPT and func in decomposition_table:
                with self:
                    taken = decomposition_table[func](*args, **kwargs)
                if taken is not NotImplemented:
                    return taken
            if self.how.products == "fused" and name in ("mul", "add", "sub") and x is not None:
                return func(*(a.double() if isinstance(a, torch.Tensor) else a for a in args), **kwargs)
            return func(*args, **kwargs)

        def _sum(self, x: torch.Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
            flat, chosen = float32.moved(x.float(), dim)
            total = float32.kept(float32.reduce(flat, self.how.reduction), chosen, keepdim)
            if self.how.means == "scaled":
                self.sums.append((total, float32.kept(float32.scaled(flat), chosen, keepdim)))
            return total

        def _cumsum(self, x: torch.Tensor, dim: int, dtype: Any = None) -> Any:
            return self._scan(x, dim, np.add)

        def _cumprod(self, x: torch.Tensor, dim: int, dtype: Any = None) -> Any:
            return self._scan(x, dim, np.multiply)

        def _scan(self, x: torch.Tensor, dim: int, ufunc: Any) -> Any:
            if not x.dim() or self.how.reduction == "plain":
                return None
            return float32.scanned(x.float().movedim(dim, -1), self.how.reduction, ufunc).movedim(-1, dim)

        def _mean(self, x: torch.Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
            flat, chosen = float32.moved(x.float(), dim)
            return float32.kept(self._average(flat, flat.shape[-1]), chosen, keepdim)

        def _average(self, flat: torch.Tensor, count: Any) -> torch.Tensor:
            """Return the sum divided by `count`, or times its reciprocal, as in kernels that know it beforehand."""
            if self.how.means == "scaled":
                return float32.scaled(flat) / count
            return self._shared(float32.reduce(flat, self.how.reduction), count)

        def _shared(self, total: torch.Tensor, count: Any) -> torch.Tensor:
            return total * (1 / torch.tensor(float(count))) if self.how.division == "reciprocal" else total / count

        def _var_mean(self, x: torch.Tensor, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
            flat, chosen = float32.moved(x.float(), dim)
            n = flat.shape[-1]
            count = n - (1 if correction is None else correction)
            if self.how.variance == "welford":
                mean, squares = float32.welford(flat, 1 if self.how.reduction == "serial" else 32)
                var = self._shared(squares, count)
            elif self.how.variance == "welford by terms":
                flat = flat.flip(-1) if self.how.reduction in ("reversed", "backwards") else flat
                mean, squares = float32.by_terms(flat, self.how.division == "reciprocal")
                var = self._shared(squares, count)
            else:
                mean = self._average(flat, n)
                var = self._average((flat - mean[..., None]).square(), count)
            return float32.kept(var, chosen, keepdim), float32.kept(mean, chosen, keepdim)

        def _var(self, x: torch.Tensor, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
            return self._var_mean(x, dim, correction, keepdim)[0]

        def _std(self, x: torch.Tensor, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
            return self._var(x, dim, correction, keepdim).sqrt()

        def _linalg_vector_norm(
            self, x: torch.Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
        ) -> Any:
            if ord != 2:
                return None
            flat, chosen = float32.moved(x.float(), dim)
            return float32.kept(float32.reduce(flat.square(), self.how.reduction).sqrt(), chosen, keepdim)

        def _exp(self, x: torch.Tensor) -> Any:
            return torch.exp2(x.float() * 1.4426950408889634) if self.how.exponential == "exp2" else None

        def _div(self, x: torch.Tensor, other: Any) -> Any:
            for total, of_scaled in self.sums:
                if total is x:
                    return of_scaled / other
            if self.how.division != "reciprocal" or not isinstance(other, torch.Tensor):
                return None
            return x.float() * (1 / other.float())

        def _mm(self, a: torch.Tensor, b: torch.Tensor) -> Any:
            if self.how.matrices == "truncated":
                return float32.on_tensor_cores(a, b)
            if not self.how.orders_products:
                return None
            step = {"serial": 1, "kahan": 1, "reversed": 4, "pairwise": 16}.get(self.how.reduction, 8)
            step = max(step, a.numel() * b.shape[-1] // float32.WORK)
            total = a.new_zeros(*a.shape[:-1], b.shape[-1])
            for k in range(0, a.shape[-1], step):
                total = total + a[..., k : k + step] @ b[..., k : k + step, :]
            return total

        _bmm = _mm

        def _addmm(self, bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
            made = self._mm(a, b)
            return None if made is None or beta != 1 or alpha != 1 else made + bias

        def _convolution(
            self,
            x: torch.Tensor,
            weight: torch.Tensor,
            bias: Any,
            stride: Any,
            padding: Any,
            dilation: Any,
            transposed: bool,
            outside: Any,
            groups: int,
        ) -> Any:
            if transposed or groups != 1 or x.dim() != 4 or not self.how.orders_products:
                return None
            columns = torch.nn.functional.unfold(x, weight.shape[2:], dilation, padding, stride)
            flat = weight.reshape(weight.shape[0], -1)
            out = torch.stack([self._mm(flat, c) for c in columns])
            size = [
                (x.shape[i] + 2 * padding[i - 2] - dilation[i - 2] * (weight.shape[i] - 1) - 1) // stride[i - 2] + 1
                for i in (2, 3)
            ]
            out = out.view(x.shape[0], weight.shape[0], *size)
            return out if bias is None else out + bias[None, :, None, None]

    return Honest


_KEPT = frozenset(
    """sum mean mm bmm addmm convolution exp div erf var_mean amax max where cumsum cumprod cummax cummin
    logcumsumexp""".split()  # noqa: SIM905
)
"""Not decomposed. PyTorch would make a running sum of n terms from n² of them."""
