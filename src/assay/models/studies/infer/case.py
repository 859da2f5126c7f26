"""What a process is told of the model, and the name of one measurement: a variant in one arm at one batch size."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Setup:
    """The same for every variant: they differ in their kernels alone."""

    model: str
    options: Mapping[str, str]
    """Those that are not at their defaults."""
    weights: str
    """A file; empty: the initial weights of the seed."""
    source: str
    """`given`, `trained`, `published` or `seeded`."""
    dtype: str
    device: str
    seed: int
    threads: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Case:
    subject: Setup
    variant: str
    rules: Mapping[str, str]
    arm: str = ""
    batch: int = 0
    """Without arm and batch: the variant as a whole, which cannot run here."""

    def __str__(self) -> str:
        about = {"variant": self.variant}
        about |= {"arm": self.arm, "batch": str(self.batch)} if self.arm else {}
        about |= dict(self.subject.options) | {"dtype": self.subject.dtype, "device": self.subject.device}
        return ",".join(["infer", *(f"{k}={v}" for k, v in about.items())])

    def replay(self, own: Mapping[str, str], given: str) -> str:
        """`own`: the rules of --swap. `given`: the file of --weights."""
        words = ["assay model infer", self.subject.model]
        if self.variant == OWN:
            words += [f"--swap {shlex.quote(f'{k}={v}')}" for k, v in own.items()] + ["--variant", OWN]
        else:
            words += ["--variant", self.variant]
        words += ["--arm", self.arm, "--batch", str(self.batch)] if self.arm else []
        words += [f"--{k} {v}" for k, v in self.subject.options.items()]
        words += ["--dtype", self.subject.dtype, "--device", self.subject.device]
        words += ["--weights", shlex.quote(given)] if given else []
        words += ["--seed", str(self.subject.seed)] if self.subject.seed else []
        return " ".join(words)


BASELINE = "torch"
"""The variant in which nothing is swapped."""
OWN = "swap"
"""The variant that --swap names."""
