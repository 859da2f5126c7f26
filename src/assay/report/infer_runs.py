"""The runs of `assay model infer`, which are shown one by one: times of two runs do not compare, and `swap` may mean
other kernels in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from assay.models.studies.infer.variants import OWN
from assay.report import rows
from assay.report.infer_tables import One
from assay.units import count

_NAMED = 4
"""The most variants that a label names."""
_OWN_PARTS = ("variant", "arm", "batch")
"""Parts of a workload in which the records of one run differ."""

_Set = tuple[object, ...]


@dataclass(frozen=True)
class Run:
    """The records of one run of one model in one format, without those that a newer run of the same kernels
    replaces."""

    model: str
    dtype: str
    ones: Sequence[One]
    label: str = ""
    """The kernels. Empty if the run is the only one of its model and has no `--swap`."""
    older: Sequence[One] = ()
    """What only an older run of the same kernels measured. It is not shown."""

    @property
    def name(self) -> str:
        return f"{self.model}  {self.dtype}" + f", {self.label}" * bool(self.label)


def runs(ones: Iterable[One]) -> list[Run]:
    """Return the runs by model and format, in the order of their first records. Of several runs of the same kernels
    on the same device, only the newest is shown."""
    models: dict[tuple[str, str], dict[str, list[One]]] = {}
    for one in ones:
        models.setdefault((one.record.kernel, one.evidence.dtype), {}).setdefault(one.record.run, []).append(one)
    return [run for (model, dtype), by_run in models.items() for run in _of_model(model, dtype, by_run)]


def _of_model(model: str, dtype: str, by_run: dict[str, list[One]]) -> list[Run]:
    newest: dict[_Set, str] = {}
    """Set of kernels → its newest run."""
    kept: dict[str, list[One]] = {}
    older: dict[str, list[One]] = {}
    for run in sorted(by_run, key=lambda run: (_time(by_run[run]), run), reverse=True):
        every = by_run[run]
        own = any(one.evidence.rules and _set(one) not in newest for one in every)
        # The baseline of a run is shown beside its kernels, even if a newer run has one, too.
        replaced = [one for one in every if _set(one) in newest and not (own and not one.evidence.rules)]
        kept[run] = [one for one in every if not any(one is other for other in replaced)]
        for one in (one for one in replaced if one.record.median):
            newer = newest[_set(one)]
            if _at(one) not in map(_at, by_run[newer]):
                older.setdefault(newer, []).append(one)
        for one in every:
            newest.setdefault(_set(one), run)
            newest.setdefault(_kernels(one), run)
    shown = [
        Run(model, dtype, kept[run], _label(kept[run], len(by_run) > 1), older.get(run, ()))
        for run in by_run
        if kept[run]
    ]
    labels = Counter(run.label for run in shown)
    return [
        replace(run, label=f"{run.label}, run {run.ones[0].record.run}") if labels[run.label] > 1 else run
        for run in shown
    ]


def _time(ones: Sequence[One]) -> str:
    return max(str(one.record.provenance.get("time", "")) for one in ones)


def _kernels(one: One) -> _Set:
    """Return the kernels, and what else identifies a variant in any run: the device and the model's options."""
    options = tuple((k, v) for k, v in one.record.point.items() if k not in _OWN_PARTS)
    return tuple(sorted(one.evidence.rules.items())), rows.device(one.record), options


def _set(one: One) -> _Set:
    """Return the kernels; for a time, also the number of threads, so that only a time replaces a time."""
    return (*_kernels(one), "timed", one.evidence.threads) if one.record.median else _kernels(one)


def _at(one: One) -> _Set:
    return *_set(one), one.evidence.arm, one.evidence.batch


def _label(ones: Sequence[One], several: bool) -> str:
    """Return the names of the variants. That of `--swap` is its kernels."""
    names: dict[str, None] = {}
    for one in (one for one in ones if one.evidence.rules):
        own = one.evidence.variant == OWN
        if own or several:
            names[kernels(one) if own else one.evidence.variant] = None
    if len(names) > _NAMED:
        left = len(names) - _NAMED + 1
        return ", ".join(list(names)[: _NAMED - 1]) + f" and {count(left, 'other')}"
    return ", ".join(names) or ("torch alone" if several else "")


def kernels(one: One) -> str:
    """Return the rules as `--swap` has them: `gelu=gelu/triton layernorm=layernorm/triton`."""
    return " ".join(f"{site}={kernel}" for site, kernel in one.evidence.rules.items())
