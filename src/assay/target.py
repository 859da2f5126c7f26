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


KNOWN = (50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)
"""The compute capabilities of NVIDIA's compilers up to CUDA 13. A compiler that is asked for any other may abort."""
_SUFFIXES = {"": KNOWN[0], "a": 90, "f": 100}
"""Each suffix, with the least capability that has it."""


def target(name: str | Target) -> Target:
    if isinstance(name, Target):
        return name
    parts = re.fullmatch(r"sm_([1-9]\d{1,2})([af]?)", name)
    if name == "cpu" or (parts and int(parts[1]) in KNOWN and int(parts[1]) >= _SUFFIXES[parts[2]]):
        return Target(name)
    known = ", ".join(f"sm_{capability}" for capability in KNOWN)
    raise UsageError(
        f"no target called '{name}'",
        fix=f"a GPU architecture: {known}; with an a from sm_90a, with an f from sm_100f; or cpu",
    )


DEFAULT = Target("sm_90")
