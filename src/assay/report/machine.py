"""Reads device models from records, and tabulates their figures next to published ones."""

import re
from collections.abc import Iterable
from typing import Any

from assay import units
from assay.machine.evidence import MachineEvidence
from assay.machine.model import Figure, Model
from assay.record import Record

GROUPS = {
    "dram": "Memory",
    "l2": "Caches",
    "l1": "Caches",
    "shared": "Caches",
    "latency": "Latency",
    "vector": "Arithmetic",
    "mufu": "Arithmetic",
    "tensor": "Tensor cores",
    "atomic": "Atomics",
    "launch": "Launch",
    "clock": "Clock",
}
WORDS = {
    "dram": "DRAM",
    "l1": "L1",
    "l2": "L2",
    "l3": "L3",
    "shared": "shared memory",
    "graph_node": "graph node",
    "mufu": "special functions",
}


def models(records: Iterable[Record]) -> list[Model]:
    """Return one model per device: the latest measured one, else the latest published one."""
    every = [m for r in records if r.verb == "machine" and (m := MachineEvidence.of(r).model)]
    return list({model.device: model for model in sorted(every, key=lambda m: (m.measured, m.time))}.values())


def model_of(records: Iterable[Record], device: str) -> Model | None:
    """Return the model of a device by the name in a record. A CPU's model includes the number of cores that it could
    use, which may be fewer; any model of the same chip is accepted."""
    known = {m.device: m for m in models(records)}
    chip = re.sub(r", \d+ cores?$", "", device)
    same_chip = (m for name, m in known.items() if re.sub(r", \d+ cores?$", "", name) == chip)
    return known.get(device) or next(same_chip, None)


def table(model: Model) -> list[dict[str, Any]]:
    """Return every figure, grouped, with its spread, its clock and the published value."""
    result = []
    for key, figure in model.figures.items():
        unit, factor = ("s", 1e-9) if figure.unit == "ns" else (figure.unit, 1.0)  # scaled like all other times
        value, low, high = (None if v is None else v * factor for v in (figure.value, figure.low, figure.high))
        known = None if figure.published is None or isinstance(figure.published, tuple) else figure.published * factor
        result.append(
            {
                "key": key,
                "group": GROUPS.get(key.partition(".")[0], "Other"),
                "name": " ".join(WORDS.get(p, p) for p in key.split(".")),
                "value": units.scaled(value, unit),
                "sort": value,
                "spread": _spread(value, low, high),
                "clock": units.scaled(figure.clock_mhz * 1e6 if figure.clock_mhz else None, "Hz"),
                "published": _published(figure, known, unit),
                "share": value / known if model.measured and value and known and unit != "cycles" else None,
                "where": figure.where,
            }
        )
    order = list(dict.fromkeys(GROUPS.values()))
    return sorted(result, key=lambda f: order.index(f["group"]) if f["group"] in order else len(order))


def _spread(value: float | None, low: float | None, high: float | None) -> str:
    if not value or low is None or high is None:
        return units.NOTHING
    return f"±{50 * (high - low) / abs(value):.1f}\u00a0%"


def _published(figure: Figure, value: float | None, unit: str) -> units.Quantity:
    """Return the published number, or the range as published."""
    if isinstance(figure.published, tuple):
        return units.Quantity(" – ".join(f"{v:g}" for v in figure.published), unit)
    return units.scaled(value, unit, 3)
