"""Targets that code is built for: `sm_90`, `sm_90a`, `cpu`. Building never needs the device; running does."""

import re
from dataclasses import dataclass

from assay.errors import UsageError


@dataclass(frozen=True)
class Target:
    name: str

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability: (9, 0) for sm_90 and sm_90a."""
        digits = re.sub(r"\D", "", self.name)
        return int(digits[:-1]), int(digits[-1])

    def __str__(self) -> str:
        return self.name


def target(name: str | Target) -> Target:
    if isinstance(name, Target):
        return name
    if name == "cpu" or re.fullmatch(r"sm_[1-9]\d{1,2}[af]?", name):
        return Target(name)
    raise UsageError(
        f"no target called '{name}'", fix="a GPU architecture such as sm_80, sm_90, sm_90a, sm_100; or cpu"
    )


DEFAULT = Target("sm_90")
