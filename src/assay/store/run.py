"""A run: one invocation of a verb, summed up from its records."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    id: str
    """Empty for records that were made outside any run."""
    verbs: tuple[str, ...]
    first: str
    """Times of its first and, below, of its last record: UTC, ISO."""
    last: str
    devices: tuple[str, ...]
    commit: str
    counts: dict[str, int]
    """Number of records by status."""
    kernels: tuple[str, ...] = ()
    """Their addresses, in alphabetical order."""

    @property
    def device(self) -> str:
        return ", ".join(self.devices)
