"""The machine's measured model, read out of its records: figures by key, and a table beside what is published."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from assay import units
from assay.machine.model import Model
from assay.record import Record
from assay.report.rows import number

UNITS = {"B/s": "B/s", "op/s": "op/s", "s": "s", "Hz": "Hz", "cycles": "cycles", "ns": "ns"}
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


def models(records: Iterable[Record]) -> list[dict[str, Any]]:
    """One per device: the last that was measured, else the last that was published."""
    found: dict[str, dict[str, Any]] = {}
    told = [r.evidence["model"] for r in records if r.verb == "machine" and isinstance(r.evidence.get("model"), dict)]
    for model in sorted(told, key=lambda m: (m.get("source") == "measured", str(m.get("time", "")))):
        found[str(model.get("device", ""))] = model
    return list(found.values())


def model_of(records: Iterable[Record], device: str) -> Model | None:
    """Of a device as a record names it. A CPU's model counts the cores it was given, which may be fewer."""
    known = {str(m.get("device", "")): m for m in models(records)}
    chip = re.sub(r", \d+ cores?$", "", device)
    near = [name for name in known if re.sub(r", \d+ cores?$", "", name) == chip]
    found = known.get(device) or (known[near[0]] if near else None)
    return Model.from_dict(found) if found else None


def table(model: dict[str, Any]) -> list[dict[str, Any]]:
    """Every figure, grouped, with its spread, clock, and what is published beside it."""
    found, measured = [], model.get("source") == "measured"
    for key, figure in (model.get("figures") or {}).items():
        unit = UNITS.get(str(figure.get("unit", "")), str(figure.get("unit", "")))
        value, low, high, published = (number(figure.get(k)) for k in ("value", "low", "high", "published"))
        if unit == "ns" and value is not None:  # scaled like every other time
            unit, value = "s", value * 1e-9
            low, high, published = (None if v is None else v * 1e-9 for v in (low, high, published))
        found.append(
            {
                "key": key,
                "group": GROUPS.get(key.partition(".")[0], "Other"),
                "name": " ".join(WORDS.get(p, p) for p in key.split(".")),
                "value": units.scaled(value, unit),
                "sort": value,
                "spread": _spread(value, low, high),
                "clock": units.scaled(_hertz(figure.get("clock_mhz")), "Hz"),
                "published": _published(figure.get("published"), published, unit),
                "share": value / published if measured and value and published and unit != "cycles" else None,
                "where": str(figure.get("where") or ""),
            }
        )
    order = list(dict.fromkeys(GROUPS.values()))
    return sorted(found, key=lambda f: order.index(f["group"]) if f["group"] in order else len(order))


def _spread(value: float | None, low: float | None, high: float | None) -> str:
    if not value or low is None or high is None:
        return units.NOTHING
    return f"±{50 * (high - low) / abs(value):.1f}\u00a0%"


def _hertz(mhz: Any) -> float | None:
    return None if number(mhz) is None else float(mhz) * 1e6


def _published(told: Any, value: float | None, unit: str) -> units.Quantity:
    """A number, or a range or words as they stand."""
    if value is not None:
        return units.scaled(value, unit, 3)
    if isinstance(told, list | tuple) and told:
        return units.Quantity(" – ".join(f"{v:g}" for v in told), unit)
    return units.Quantity(str(told) if told else units.NOTHING, "")
