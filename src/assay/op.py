"""What is computed: axes, inputs, outputs, a reference evaluated in float64, a cost, and what kernels may assume."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from assay.dtype import dtype
from assay.errors import UsageError

NAN, INF = math.nan, math.inf
FORMS = ("sorted", "unique", "offsets", "positive_definite", "row_stochastic")
"""In turn: ascending along the last dimension; distinct along it; symmetric with positive eigenvalues; rows of
probabilities that sum to 1."""


@dataclass(frozen=True)
class Axis:
    """A size that workloads choose."""

    min: int = 0
    max: int = 2**40
    typical: int = 1024
    problems: bool = False
    """True if it counts independent problems: a batch, heads. Interpreters run these one by one and get only a few."""


@dataclass(frozen=True)
class Attribute:
    """A scalar parameter of the op (eps, stride) and the values fuzzing tries."""

    default: float | int
    choices: tuple[float | int, ...] = ()


class Tensor:
    """An input or output: `Tensor("rows", "cols", dtype="fp32", optional=True)`."""

    def __init__(
        self,
        *shape: str | int,
        dtype: str | None = None,
        optional: bool = False,
        range: tuple[float, float] = (-1e4, 1e4),
        specials: Sequence[float] = (NAN, INF, -INF),
        strided: bool | str = False,
        given: Callable[..., Any] | None = None,
        index: str = "",
        form: str | Callable[..., Any] = "",
        constant: bool = False,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        """None: the workload's."""
        self.optional = optional
        self.range = range
        """Range of the finite values for which the op promises correct results."""
        self.specials = tuple(specials)
        """Values outside the range, mostly non-finite ones, for which the op promises correct results."""
        self.strided = strided
        """Whether there may be gaps between rows (the last dimension stays dense); "all": between the elements of a row
        too. Otherwise the tensor is contiguous. Applies to outputs as well as inputs."""
        self.given = given
        """Function that computes it from the other inputs in float64 (a forward pass's saved mean); None: drawn."""
        self.index = index
        """The axis that these integers index: values are at least 0 and less than its size."""
        self.form = form
        """A property that all values together have: one of FORMS, or a function that makes drawn values fit."""
        self.constant = constant
        """True if it stays the same from call to call, like a model's weights, so that a peer may prepare it once."""
        if isinstance(form, str) and form and form not in FORMS:
            raise UsageError(f"no form of a tensor called '{form}'", fix=f"one of: {', '.join(FORMS)}, or a function")
        if form == "offsets" and not index:
            raise UsageError("offsets of what?", fix='name the axis that they divide: index="entries", form="offsets"')
        if strided not in (True, False, "rows", "all"):
            raise UsageError(f"strided={strided!r} is unknown", fix='True or "rows", "all", or False')


@dataclass(frozen=True)
class Random:
    """How an op draws at random: the possible values of each element of the result, and their probabilities."""

    seed: str
    """The attribute that determines the draw: the same seed gives the same bits, another seed another draw."""
    outcomes: Callable[..., Any]
    """Called like the reference without the seed. Returns a list of (values, probability) for the first output."""


@dataclass(frozen=True)
class Op:
    name: str
    reference: Callable[..., Any]
    """Plain PyTorch. In float64 it is the oracle; in the workload's dtype it shows plain PyTorch's own error."""
    axes: Mapping[str, Axis]
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    derived: Mapping[str, Callable[[Any], int]] = field(default_factory=dict)
    """Sizes that follow from the others (a convolution's output height)."""
    require: Callable[[Any], bool] | None = None
    """True for the combinations of axes that are in the contract."""
    dtypes: tuple[str, ...] = ("fp32", "bf16", "fp16")
    operations: Callable[[Any], int] = lambda w: 0
    """Number of arithmetic operations that must be done."""
    traffic: Callable[[Any], int] | None = None
    """Bytes that must move; None: every input read once, every output written once."""
    irreducible: bool = False
    """True if no algorithm needs fewer operations, so that they make a floor."""
    magnitude: Callable[..., Any] | None = None
    """The scale at which its arithmetic rounds; None: that of the result itself."""
    half_magnitude: Callable[..., Any] | None = None
    """In 16-bit formats: the scale of an intermediate result that kernels round to the format as well (the weights of
    attention, before they multiply the values). None: only the output is rounded to it."""
    roundings: float | None = None
    """Ulps, at the magnitude, that a careful float32 evaluation may lose: elementary functions at their specified
    bounds, and half an ulp for each operation around them. 0: the exact result, rounded once to the output's format, is
    the only right one. None: 1 if a magnitude is declared; with neither, both are found by random rounding of the
    reference."""
    terms: Callable[[Any], int | dict[str, int]] = lambda w: 1
    """Number of terms that one result sums, for all outputs or for each. In pairwise summation they lose up to half an
    ulp for each doubling."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Outputs that may share memory with an input."""
    independent: str = ""
    """An axis along which results do not depend on each other; huge workloads are judged in slices of it."""
    aligned: bool = False
    """True if kernels may assume 16-byte aligned tensors."""
    random: Random | None = None
    """Set if the result is drawn at random; it is then judged by its distribution and its seed."""
    summary: str = ""
    source: str = ""
    """The file that declares it."""

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        """Return what the reference computes: a decorated function can still be called."""
        return self.reference(*inputs, **attributes)

    def lost(self) -> float:
        """Return the ulps, at the magnitude, that a careful float32 evaluation may lose, not counting sums."""
        return 1.0 if self.roundings is None else self.roundings

    def narrowed(self, requires: Collection[str] = (), most: Mapping[str, int] | None = None) -> Op:
        """Return the op as seen by a kernel that promises less: some inputs required, some axes shorter."""
        if not requires and not most:
            return self
        inputs = {n: copy(t) for n, t in self.inputs.items()}
        for name in requires:
            inputs[name].optional = False
        shorter = {n: replace(self.axes[n], max=min(self.axes[n].max, limit)) for n, limit in (most or {}).items()}
        return replace(self, inputs=inputs, axes={**self.axes, **shorter})


def op(
    *,
    axes: Mapping[str, Axis],
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    attributes: Mapping[str, Attribute] | None = None,
    derived: Mapping[str, Callable[[Any], int]] | None = None,
    require: Callable[[Any], bool] | None = None,
    dtypes: Sequence[str] = ("fp32", "bf16", "fp16"),
    operations: Callable[[Any], int] = Op.operations,
    traffic: Callable[[Any], int] | None = None,
    irreducible: bool = False,
    magnitude: Callable[..., Any] | None = None,
    half_magnitude: Callable[..., Any] | None = None,
    roundings: float | None = None,
    terms: Callable[[Any], int | dict[str, int]] = Op.terms,
    aliases: Mapping[str, str] | None = None,
    independent: str = "",
    aligned: bool = False,
    random: Random | None = None,
    name: str = "",
) -> Callable[[Callable[..., Any]], Op]:
    """Declare an op; the decorated function is its reference, its docstring the summary. See docs/ops.md."""

    def declare(reference: Callable[..., Any]) -> Op:
        return Op(
            name=name or reference.__name__,
            reference=reference,
            axes=dict(axes),
            inputs=dict(inputs),
            outputs=dict(outputs),
            attributes=dict(attributes or {}),
            derived=dict(derived or {}),
            require=require,
            dtypes=tuple(dtype(d).name for d in dtypes),
            operations=operations,
            traffic=traffic,
            irreducible=irreducible,
            magnitude=magnitude,
            half_magnitude=half_magnitude,
            roundings=roundings,
            terms=terms,
            aliases=dict(aliases or {}),
            independent=independent,
            aligned=aligned,
            random=random,
            summary=(reference.__doc__ or "").strip().splitlines()[0] if reference.__doc__ else "",
            source=reference.__code__.co_filename,
        )

    return declare
