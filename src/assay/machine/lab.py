"""What GPU probes run on: proven kernels, buffers, launches on a blocked stream, and the clock of each launch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from statistics import median
from typing import TYPE_CHECKING, Any

from assay import host
from assay.artifact import Artifact
from assay.backends.launcher import Launcher, Options
from assay.errors import AssayError
from assay.machine.build import build
from assay.machine.probe import Probe
from assay.machine.proof import Finding
from assay.target import Target

if TYPE_CHECKING:
    import torch

LAUNCHES, WARM_UP = 11, 3
"""Timed launches per figure, and untimed launches before them."""
QUICK = 3
"""Timed launches per cell of a sweep; the fastest cell is then measured in full."""
SECONDS = 3e-3
"""Target duration of one launch in seconds, long enough that its start and end are negligible."""
HOLD = 2_000_000
"""Nanoseconds that the stream is held while the host queues launches, so that the device is timed and not the host."""
SEEN = 20_000
"""Nanoseconds that a block must run for its clock to be measured."""
KEY = 0x9E3779B9
"""A value that results are compared with, so that the compiler cannot leave out computing them."""


class ProofFailed(AssayError):
    """Raised if the machine code is not what the probe claims to measure."""

    def __init__(self, instance: str, finding: Finding) -> None:
        super().__init__(f"{instance}: {finding.says}")
        self.instance, self.finding = instance, finding


class Kernel:
    """One loaded instance; call it with grid, block and arguments."""

    def __init__(self, artifact: Artifact) -> None:
        from cuda.core import ObjectCode

        self.artifact = artifact
        self._launch = Launcher(ObjectCode.from_cubin(artifact.cubin).get_kernel(artifact.symbol))

    def resident(self, threads: int, blocks: int) -> int:
        """Return how many threads of `blocks` blocks run at once on a multiprocessor, which has 65536 registers."""
        registers = -(-(self.artifact.registers or 32) // 8) * 8
        return min(blocks, 65536 // (registers * threads)) * threads

    def __call__(self, grid: int, block: int, *arguments: Any, shared: int = 0) -> None:
        """Launch on torch's current stream."""
        self._launch((grid,), (block,), arguments, Options(shared))


class Lab:
    def __init__(self) -> None:
        import torch
        from cuda.core import Device

        torch.cuda.init()
        torch.zeros(1, device="cuda")
        Device().set_current()
        properties = torch.cuda.get_device_properties(0)
        self.sms: int = properties.multi_processor_count
        self.l2: int = properties.L2_cache_size
        self.memory: int = properties.total_memory
        self.artifacts: list[Artifact] = []
        """The artifacts of the current probe."""
        self.findings: dict[str, Finding] = {}
        """The findings on the machine code of its instances."""
        self._loaded: dict[tuple[str, str], tuple[Kernel, Finding]] = {}
        torch.manual_seed(0)

    @cached_property
    def target(self) -> Target:
        gpu = host.gpu()
        assert gpu is not None
        return build_target(gpu.target)

    def begin(self) -> None:
        """Drop what the last probe built and allocated."""
        import torch

        self.artifacts, self.findings = [], {}
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def kernel(self, probe: Probe, name: str) -> Kernel:
        """Build, check and load one instance. Code that fails its proof is never launched."""
        key = (probe.source, name)
        if key not in self._loaded:
            artifact = probe.build(name, self.target)
            finding = probe.prove(name, self.target)
            if not finding.held:
                raise ProofFailed(name, finding)
            self._loaded[key] = (Kernel(artifact), finding)
        kernel, finding = self._loaded[key]
        self.artifacts.append(kernel.artifact)
        self.findings[name] = finding
        return kernel

    @cached_property
    def sink(self) -> torch.Tensor:
        import torch

        return torch.zeros(4 << 20, dtype=torch.int32, device="cuda")

    @cached_property
    def _clocks(self) -> torch.Tensor:
        import torch

        return torch.zeros((64, 2), dtype=torch.int64, device="cuda")

    def floats(self, bytes_: int) -> torch.Tensor:
        """Return random finite float32 numbers."""
        import torch

        return torch.empty(bytes_ // 4, dtype=torch.float32, device="cuda").normal_()

    @cached_property
    def _hold(self) -> Kernel:
        return Kernel(build("launching.cu", ("hold",), self.target).artifacts["hold"])

    def hold(self, nanoseconds: int = HOLD) -> None:
        """Keep the stream busy while the host queues what is to be timed."""
        self._hold(1, 1, nanoseconds)

    def time(
        self,
        go: Callable[[torch.Tensor], None],
        launches: int = LAUNCHES,
        before: Callable[[], Any] | None = None,
        warm_up: int = WARM_UP,
    ) -> tuple[list[float], list[float]]:
        """Return the seconds of each launch, by events on a held stream, and the SM clock of each in MHz, by the
        device's own counters. `go` launches once; its argument is the tensor that the launch writes its clocks to."""
        import torch

        clocks = self._clocks
        clocks.zero_()
        for _ in range(warm_up):
            go(clocks[0])
        torch.cuda.synchronize()
        marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(launches)]
        self.hold()
        for i, (start, end) in enumerate(marks):
            if before:
                before()
            start.record()
            go(clocks[i])
            end.record()
        torch.cuda.synchronize()
        seconds = [start.elapsed_time(end) / 1e3 for start, end in marks]
        noted = clocks[:launches].tolist()
        return seconds, [1e3 * cycles / ns for cycles, ns in noted if ns >= SEEN]

    def rounds(self, go: Callable[[int, torch.Tensor], None], seconds: float = SECONDS, first: int = 64) -> int:
        """Return the number of rounds with which a launch takes about `seconds`."""
        taken = min(self.time(lambda clocks: go(first, clocks), 3, warm_up=1)[0])
        return max(first, int(first * seconds / taken))

    def per_clock(self, value: float, clocks_mhz: list[float]) -> dict[str, float]:
        """Return a rate per clock and multiprocessor, or nothing without clocks."""
        return {"per_clock_sm": value / (median(clocks_mhz) * 1e6 * self.sms)} if clocks_mhz else {}


def build_target(target: Target) -> Target:
    """Return the target that probes are built for: sm_90a for sm_90, since wgmma needs it."""
    return Target("sm_90a") if str(target) == "sm_90" else target


@cache
def numpy() -> Any:
    import numpy

    return numpy


def key() -> Any:
    return numpy().uint32(KEY)


def f32(value: float) -> Any:
    return numpy().float32(value)
