"""What a verdict on the judge itself stands on."""

from dataclasses import dataclass

from assay.evidence import Evidence


@dataclass(frozen=True)
class SelftestEvidence(Evidence):
    entry: str = ""
    """What the wrong kernel does."""
    detector: str = ""
    """Those that may catch it: `values`, `bounds or crash`."""
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
    """The same, where it is for `bench`."""
