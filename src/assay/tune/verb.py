"""Runs one plan after another and yields records as they are ready."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay import provenance
from assay.backends import Level
from assay.catalog.called import called
from assay.record import Record, Status
from assay.settings import settings_of
from assay.tune.evidence import TuneEvidence
from assay.tune.measured import Measured
from assay.tune.planning import Options, TunePlan, plan
from assay.tune.quiet import refuse_busy
from assay.tune.ranked import ranked
from assay.watching import watched


def tune(*what: str | Path | Callable[..., Any], options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Tune kernels, given as ops, addresses, patterns, files or functions. For each kernel and workload, yield a record
    per configuration, then one with the choice."""
    for name in ("dtypes", "backends"):
        if isinstance(settings.get(name), str):
            settings[name] = tuple(settings[name].split(","))
    chosen = options or settings_of(Options, settings)
    plans = plan(what, chosen)
    yield from watched("tune", run(plans, chosen), [f"{p.kernel.name} {p.workload.dtype}" for p in plans])


def run(plans: list[TunePlan], options: Options, tick: Callable[[str], None] = lambda text: None) -> Iterator[Record]:
    """Tune one kernel after another, since nothing else may run on the device meanwhile."""
    for device in {p.here.device for p in plans if p.measured}:
        refuse_busy(device)
    for planned in plans:
        common = about(planned, options)
        if planned.measured:
            yield from Measured(planned, options, common, tick).run()
        elif planned.target is not None and planned.here.level is not Level.MISSING:
            yield from ranked(planned, options, common, tick)
        else:
            why = f"{planned.here.reason}; {planned.here.fix}"
            yield Record(status=Status.SKIPPED, reason=why, evidence=TuneEvidence().to_dict(), **common)


def about(planned: TunePlan, options: Options) -> dict[str, Any]:
    """Return the fields that all records of one kernel and workload share."""
    name = called(planned.kernel, planned.op, options.parameters)
    target = f" --target {options.target}" if options.target else ""
    strategy = f" --strategy {options.strategy}" if options.strategy else ""
    return {
        "verb": "tune",
        "kernel": planned.kernel.name,
        "workload": str(planned.workload),
        "run": options.run,
        "replay": f"assay tune {name} --workload {planned.workload}{target}{strategy}",
        "source": provenance.source_of(planned.kernel.home, planned.kernel.line),
        "provenance": provenance.provenance(options.seed),
    }
