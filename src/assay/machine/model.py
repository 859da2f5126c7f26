"""The model of a device: its performance figures and their spread, either measured or published."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from assay import host, provenance
from assay.errors import UsageError

MEASURED, PUBLISHED = "measured", "published"

_FOLDER = Path(__file__).parent / "published"

Published = float | tuple[float, float]
"""One value, or the range of values from different authors."""


@dataclass(frozen=True)
class Figure:
    value: float
    unit: str
    """`B/s`, `op/s` (a fused multiply-add counts as two), `cycles`, `s`, `Hz`."""
    low: float | None = None
    high: float | None = None
    """The range over repeated launches or, for published figures, over authors; None if only one value was
    published."""
    clock_mhz: float | None = None
    """The SM clock during the measurement, from the device's own counters."""
    published: Published | None = None
    """The published value for this device."""
    where: str = ""
    """The publication."""


@dataclass(frozen=True)
class Model:
    device: str
    source: str
    """`measured` or `published`; one model never mixes them."""
    run: str
    time: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    facts: Mapping[str, float] = field(default_factory=dict)
    """Properties that are not measured: sms, boost_mhz, l2_bytes, memory_bytes; cores, threads."""

    @property
    def measured(self) -> bool:
        return self.source == MEASURED

    @property
    def name(self) -> str:
        """The name by which a record cites the model: `NVIDIA H200, measured 2026-11-15T07:00:00Z`."""
        return f"{self.device}, {self.source}" + (f" {self.time}" if self.time else "")

    def value(self, key: str) -> float | None:
        figure = self.figures.get(key)
        return figure.value if figure else None

    def fastest(self, key: str) -> float | None:
        """Return the best sample of a rate: a limit must not be lower than any observed rate."""
        figure = self.figures.get(key)
        return None if figure is None else max(figure.value, figure.high or 0.0)

    def stream(self) -> float | None:
        """Return the highest memory bandwidth in the model in bytes per second, an upper bound for any kernel."""
        kinds = ("read", "write", "copy", "triad")
        return max((v for k in kinds if (v := self.fastest(f"dram.{k}")) is not None), default=None)

    def peak(self, dtype: str, tensor: bool = False) -> float | None:
        """Return operations per second in a dtype (`fp32`, `bf16`); with `tensor`, of the fastest matrix
        instruction."""
        if not tensor:
            return self.fastest(f"vector.{dtype}")
        kinds = [k for k in self.figures if k.startswith("tensor.") and k.endswith(f".{dtype}")]
        return max((v for k in kinds if (v := self.fastest(k)) is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "figures": {k: asdict(f) for k, f in self.figures.items()}, "facts": dict(self.facts)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Model:
        figures = {key: _figure(figure) for key, figure in data["figures"].items()}
        return Model(
            data["device"], data["source"], data.get("run", ""), data.get("time", ""), figures, data.get("facts", {})
        )


def this_device(kind: str | None = None) -> str:
    """Return the name of the device that `assay machine` measures here: that of `kind`, `cuda` or `cpu`; by default the
    GPU if there is one, else the CPU."""
    gpu = host.gpu()
    if gpu is not None and kind != "cpu":
        return gpu.name
    if kind == "cuda":
        raise UsageError("there is no GPU here", fix="name the device: 'NVIDIA H200'")
    return f"{provenance.cpu()}, {len(os.sched_getaffinity(0))} cores"


def slug(device: str) -> str:
    """Return a device's name as a file name: `NVIDIA H200` → `nvidia-h200`."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") or "device"


def kept_file(device: str) -> Path:
    return host.data_folder() / "machines" / f"{slug(device)}.json"


def kept(device: str | None = None) -> Model | None:
    """Return the model kept by `assay machine`, if any, of the named device or, by default, of this machine's."""
    name = this_device(device) if device in (None, "cuda", "cpu") else str(device)
    file = kept_file(name)
    if not file.exists():
        return None
    try:
        return read(file)
    except (ValueError, KeyError, TypeError) as problem:
        raise UsageError(f"{file} is no machine model: {problem}", fix="measure again: assay machine") from None


def read(file: Path) -> Model:
    """Return the model in a document of records, as written by `assay machine --out`."""
    records = json.loads(file.read_text())["records"]
    for record in reversed(records):
        if record["verb"] == "machine" and "model" in record["evidence"]:
            return Model.from_dict(record["evidence"]["model"])
    raise ValueError("it holds no model")


def published(name: str) -> Model | None:
    """Return the published model of a GPU, by the driver's name or a short one: `NVIDIA H200`, `h200`, `RTX 4090`."""
    wanted = slug(name)
    for data in _published().values():
        names = [slug(n) for n in (data["device"], *data["names"])]
        if wanted in names:
            return _from_file(data)
    return None


def shipped() -> list[Model]:
    """Return every published model that Assay contains."""
    return [_from_file(data) for data in _published().values()]


def best(device: str | None = None) -> Model | None:
    """Return the measured model if there is one, else the published one; its `source` says which."""
    if (model := kept(device)) is not None:
        return model
    return published(this_device(device) if device in (None, "cuda", "cpu") else str(device))


@cache
def _published() -> dict[str, dict[str, Any]]:
    return {file.stem: tomllib.loads(file.read_text()) for file in sorted(_FOLDER.glob("*.toml"))}


def _from_file(data: Mapping[str, Any]) -> Model:
    figures = {}
    for group in data["figures"]:
        for key, value in group["values"].items():
            given: Published = tuple(value) if isinstance(value, list) else float(value)
            middle = sum(given) / 2 if isinstance(given, tuple) else given
            low, high = given if isinstance(given, tuple) else (None, None)
            figures[key] = Figure(middle, group["unit"], low, high, published=given, where=group["where"])
    return Model(data["device"], PUBLISHED, "", "", figures, data["facts"])


def _figure(data: Mapping[str, Any]) -> Figure:
    known = {k: data[k] for k in Figure.__dataclass_fields__ if k in data}
    if isinstance(known.get("published"), list):
        known["published"] = tuple(known["published"])
    return Figure(**known)
