"""A probe: one CUDA source, its instances, the requirements on their machine code, and how to measure them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from assay.artifact import Artifact
from assay.machine.build import Built, build
from assay.machine.proof import Finding, Proof
from assay.target import Target


@dataclass(frozen=True)
class Measured:
    """The samples of a probe."""

    samples: list[float]
    """The figure of each launch."""
    clocks_mhz: list[float] = field(default_factory=list)
    workload: str = ""
    table: list[dict[str, Any]] = field(default_factory=list)
    """The sweep that the figure comes from."""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> float:
        return median(self.samples)


@dataclass(frozen=True)
class Probe:
    key: str
    """The key of its figure: `dram.read`."""
    family: str
    unit: str
    says: str
    source: str
    """A file in probes/."""
    instances: Mapping[str, Proof]
    measure: Callable[[Any, Probe], Measured]
    """Called with the lab (assay.machine.lab) and this probe."""
    helpers: tuple[str, ...] = ()
    """Instances that the measurement uses but does not measure."""
    least: tuple[int, int] = (8, 0)
    """The lowest compute capability that has it."""
    only: tuple[str, ...] = ()
    """The targets that have it; if empty, all from `least` on."""
    lacks: str = ""
    """Why other targets do not have it."""
    beside: tuple[Probe, ...] = ()
    """The probes that share its source, which is built once for all of them."""

    def fits(self, target: Target) -> bool:
        return str(target) in self.only if self.only else target.capability >= self.least

    def build(self, name: str, target: Target) -> Artifact:
        return self._built(target).artifacts[name]

    def prove(self, name: str, target: Target) -> Finding:
        """Check the machine code that will be launched."""
        return self.instances[name].check(self._built(target).function(name))

    def _built(self, target: Target) -> Built:
        """Build this probe's instances together with those of all probes that share its source."""
        sharing = [p for p in self.beside if p.fits(target)]
        names = dict.fromkeys(name for probe in (*sharing, self) for name in (*probe.instances, *probe.helpers))
        return build(self.source, tuple(names), target)
