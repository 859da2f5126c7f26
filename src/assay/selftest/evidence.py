"""The evidence of a test of the tester."""

from dataclasses import dataclass

from assay.evidence import Evidence


@dataclass(frozen=True)
class SelftestEvidence(Evidence):
    entry: str = ""
    """What the wrong kernel does."""
    detector: str = ""
    """The detectors that may catch it: `values`, `bounds or crash`."""
    caught_by: str = ""
    finding: str = ""
    twin: str = ""
    """The status of the corrected twin."""
    twin_reason: str = ""
    kernel: str = ""
    found_at: str = ""
    check: str = ""
    """The wrong kernel's status, where the entry is for `check`."""
    bench: str = ""
    """The wrong kernel's status, where the entry is for `bench`."""
    tune: str = ""
    """The status of the wrong kernel's worst configuration, where the entry is for `tune`."""
