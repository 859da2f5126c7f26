"""What one process of a study is asked: a model, at a batch size or several, compiled in one way from one state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

STATES = {
    "cold": "a new process, its cache folders empty",
    "disk": "a new process, its cache folders as a cold one left them",
    "warm": "a process that has compiled the model before",
    "sweep": "one process that meets every batch size in turn, its cache folders empty at first",
}
MODES = ("default", "reduce-overhead", "max-autotune")
SHAPES = {None: "auto", False: "static", True: "dynamic"}
"""torch.compile's `dynamic`: by default a size that changed once is dynamic from then on."""


@dataclass(frozen=True)
class Case:
    model: str
    batches: tuple[int, ...]
    dtype: str
    device: str
    state: str
    mode: str = "default"
    dynamic: bool | None = None
    backend: str = "inductor"
    """Another of torch.compile's shows what its layers cost: `eager` is dynamo alone, `aot_eager` adds AOTAutograd."""

    def at(self, state: str) -> Case:
        return replace(self, state=state)

    @property
    def sizes(self) -> str:
        return "+".join(map(str, self.batches))

    def __str__(self) -> str:
        several = f"batches={self.sizes}" if self.state == "sweep" else f"batch={self.sizes}"
        more = {"mode": self.mode, "shapes": SHAPES[self.dynamic], "backend": self.backend}
        usual = {"mode": "default", "shapes": "auto", "backend": "inductor"}
        told = "".join(f",{k}={v}" for k, v in more.items() if v != usual[k])
        return f"compile,{several},dtype={self.dtype},device={self.device},state={self.state}{told}"

    def replay(self) -> str:
        words = [f"assay model compile {self.model} --batch {self.sizes.replace('+', ',')} --dtype {self.dtype}"]
        words.append(f"--device {self.device} --state {self.state}")
        words += [f"--mode {self.mode}"] * (self.mode != "default")
        words += [{True: "--dynamic", False: "--static"}[self.dynamic]] if self.dynamic is not None else []
        words += [f"--backend {self.backend}"] * (self.backend != "inductor")
        return " ".join(words)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def case(told: Mapping[str, Any]) -> Case:
    return Case(**{**told, "batches": tuple(told["batches"])})


@dataclass(frozen=True)
class Effort:
    rounds: int = 10
    budget: float = 4.0
    """Seconds of steady calls, for each of eager and compiled."""
    calls: int = 1000
    """How far the measured curve goes, if the budget allows."""
    threads: int = 0
    """On the CPU; 0: as torch chooses."""
    seed: int = 0
    limit: int = 0
    """Times one function may be compiled before torch gives up and runs it eagerly; 0: as torch has it."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
