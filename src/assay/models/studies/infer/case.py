"""The name of one measurement: a variant in one arm at one batch size."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.models.subject.subject import Setup

BASELINE = "torch"
"""The variant in which nothing is swapped."""
OWN = "swap"
"""The variant that --swap names."""


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

    def about(self) -> dict[str, Any]:
        """As the evidence says it."""
        own = {"variant": self.variant, "rules": dict(self.rules), "arm": self.arm, "batch": self.batch}
        return own | {"dtype": self.subject.dtype, "device": self.subject.device}

    def replay(self, own: Mapping[str, str], given: str) -> str:
        """`own`: the rules of --swap. `given`: the file of --weights."""
        words = ["assay model infer", self.subject.model]
        if self.variant == OWN:
            words += [f"--swap {shlex.quote(f'{k}={v}')}" for k, v in own.items()]
        words += ["--variant", self.variant]
        words += ["--arm", self.arm, "--batch", str(self.batch)] if self.arm else []
        words += [f"--{k} {v}" for k, v in self.subject.options.items()]
        words += ["--dtype", self.subject.dtype, "--device", self.subject.device]
        words += ["--weights", shlex.quote(given)] if given else []
        words += ["--seed", str(self.subject.seed)] if self.subject.seed else []
        return " ".join(words)
