"""The options of `assay compress`, and the points of the curves that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from assay import provenance
from assay.compress import pruning, templates
from assay.errors import UsageError
from assay.models.studies import study
from assay.models.subject.entry import Entry
from assay.models.subject.registry import entry
from assay.models.subject.suitable import data_of

CONTROL = "control"
QUANTIZE_METHODS = ("ptq", "qat")
QUANTIZED = ("weights", "biases", "inputs")
PRUNED = ("weights", "activations")
WIDTHS = range(2, 33)


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options of both studies."""

    data: str = ""
    """Data set to train on and to judge by; empty: the model's own, or mnist for a user's model."""
    seeds: tuple[int, ...] = (0,)
    quick: bool = False
    """Use a subset of the data, and a base model trained for few epochs; records say so."""
    tokens: int = 0
    """Maximum number of tokens of each text; 0: the data set's usual number."""
    device: str = ""
    save: Path | None = None
    """File for the compressed model; with several points, each file is also named after its point."""
    timed: bool = True
    """Whether models with packed kernels are timed."""
    run: str = field(default_factory=provenance.new_run)


@dataclass(frozen=True, kw_only=True)
class Quantize(Common):
    widths: tuple[int, ...] = (4, 8, 16)
    formats: tuple[str, ...] = ("fixed",)
    """Names or templates; each gives a curve."""
    fraction: int | None = None
    """Fraction bits of fixed point; None: for each tensor the number with the least squared error."""
    methods: tuple[str, ...] = QUANTIZE_METHODS
    of: tuple[str, ...] = QUANTIZED
    epochs: int = 1
    """Epochs of training with the formats in place (QAT), and of the control."""


@dataclass(frozen=True, kw_only=True)
class Prune(Common):
    sparsities: tuple[float, ...] = (50.0, 90.0)
    """Per cent."""
    methods: tuple[str, ...] = pruning.METHODS
    scope: str = "local"
    of: tuple[str, ...] = ("weights",)
    recover: int = 1
    """Epochs of training with the pruning in place, and of the control; 0: none."""


@dataclass(frozen=True)
class Point:
    """One compressed model of a curve."""

    study: str
    method: str
    epochs: int = 0
    format: str = ""
    width: int | None = None
    sparsity: float | None = None
    scope: str = ""
    of: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The point's label in workloads and file names."""
        what = [self.study, self.method]
        what += [f"format={self.format}"] if self.format else []
        what += [f"sparsity={self.sparsity:g},scope={self.scope}"] if self.sparsity is not None else []
        what += [f"of={'+'.join(self.of)}"] if self.of else []
        return ",".join([*what, f"epochs={self.epochs}"])


@dataclass(frozen=True)
class Plan:
    entry: Entry
    options: Quantize | Prune
    points: tuple[Point, ...]
    device: str

    @property
    def total(self) -> int:
        return len(self.points) * len(self.options.seeds)


def quantize(model: str, options: Quantize) -> Plan:
    _verify_methods(options.methods, QUANTIZE_METHODS)
    _verify_parts(options.of, QUANTIZED)
    for width in options.widths:
        if width not in WIDTHS:
            fix = f"write widths from {WIDTHS[0]} to {WIDTHS[-1]}: --width 4,8,16"
            raise UsageError(f"a width of {width}", fix=fix)
    points = [
        Point("quantize", method, options.epochs if method == "qat" else 0, chosen, at, of=options.of)
        for template in options.formats
        for chosen, at in _of_widths(templates.written_out(template, options.fraction), options.widths)
        for method in options.methods
    ]
    return _planned(model, options, points, options.epochs if "qat" in options.methods else 0)


def _of_widths(template: str, widths: tuple[int, ...]) -> list[tuple[str, int | None]]:
    """Return the format at each width that the template allows; some formats stop at eight bits. A template that names
    its own width gives one format."""
    if "W" not in template.split(":"):
        return [(templates.of_width(template, None), None)]
    found: list[tuple[str, int | None]] = []
    refusal: UsageError | None = None
    for width in widths:
        try:
            found.append((templates.of_width(template, width), width))
        except UsageError as problem:
            refusal = problem
    if refusal is not None and not found:
        raise refusal
    return found


def prune(model: str, options: Prune) -> Plan:
    _verify_methods(options.methods, pruning.METHODS)
    _verify_parts(options.of, PRUNED)
    if options.scope not in pruning.SCOPES:
        raise UsageError(f"no scope called '{options.scope}'", fix=f"--scope {' or '.join(pruning.SCOPES)}")
    points = []
    for sparsity in options.sparsities:
        pruning.verify(sparsity)
        if 0 < sparsity < 1:
            what = f"a sparsity of {sparsity:g} % drops less than one weight in a hundred"
            raise UsageError(what, fix=f"it is a percentage: --sparsity {100 * sparsity:g}")
        for method in options.methods:
            points.append(
                Point("prune", method, options.recover, sparsity=sparsity, scope=options.scope, of=options.of)
            )
    return _planned(model, options, points, options.recover)


def _planned(model: str, options: Quantize | Prune, points: list[Point], epochs: int) -> Plan:
    if epochs < 0:
        raise UsageError(f"{epochs} epochs of training", fix="0 or more")
    if not points or not options.seeds:
        raise UsageError("there is nothing to do", fix="name at least one width or sparsity, one method and one seed")
    known = entry(model)
    known = replace(known, data=data_of(known, options.data).name)
    control = Point(points[0].study, CONTROL, epochs)
    return Plan(known, options, (control, *points), study.device(options.device))


def _verify_methods(methods: tuple[str, ...], known: tuple[str, ...]) -> None:
    for method in methods:
        if method not in known:
            raise UsageError(f"no method called '{method}'", fix=f"--method {','.join(known)}")


def _verify_parts(parts: tuple[str, ...], known: tuple[str, ...]) -> None:
    for part in parts:
        if part not in known:
            raise UsageError(f"'{part}' cannot be compressed", fix=f"--of {','.join(known)}")
