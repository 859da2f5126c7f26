"""What became of a mutant, and the score that follows from all of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from assay.evidence import Evidence
from assay.record import Record, Status


class Outcome(StrEnum):
    KILLED = "killed"
    """`check` failed it."""
    EQUIVALENT = "equivalent"
    """It was proven to compute the same."""
    SURVIVED = "survived"
    """It passed, and was not proven to compute the same."""
    STILLBORN = "stillborn"
    """It does not parse, import or compile: no kernel at all, and not counted."""
    UNTRIED = "untried"
    """This machine cannot run the kernel."""


STATUS = {
    Outcome.KILLED: Status.PASS,
    Outcome.EQUIVALENT: Status.PASS,
    Outcome.SURVIVED: Status.FAIL,
    Outcome.STILLBORN: Status.SKIPPED,
    Outcome.UNTRIED: Status.SKIPPED,
}


@dataclass(frozen=True)
class MutantEvidence(Evidence):
    """The evidence of one record of `assay selftest mutants`."""

    kernel: str = ""
    """The kernel that was changed."""
    backend: str = ""
    operator: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    before: str = ""
    after: str = ""
    outcome: Outcome = Outcome.UNTRIED
    detector: str = ""
    """killed: what noticed it."""
    finding: str = ""
    """killed: its words; survived: what `check` said."""
    found_at: str = ""
    """killed: the workload on which it was noticed."""
    workloads: int = 0
    """Tried by `check` until then, over all dtypes."""
    seconds: float = 0.0
    """Taken by `check` until then."""
    dtypes: tuple[str, ...] = ()
    """In which it was checked."""
    proof: str = ""
    """equivalent: how it was proven; survived: how far the proofs went."""
    compared: int = 0
    """Workloads on which its outputs were compared with the kernel's own, bit by bit."""
    differs_at: str = ""
    """survived: the first workload on which they differed; empty: none was found in the time given."""


@dataclass(frozen=True)
class Score:
    killed: int
    survived: int
    equivalent: int
    stillborn: int

    @property
    def counted(self) -> int:
        """Mutants that a perfect judge kills."""
        return self.killed + self.survived

    @property
    def share(self) -> float:
        return self.killed / self.counted if self.counted else 1.0

    def __str__(self) -> str:
        return (
            f"{self.killed} of {self.counted} killed ({self.share:.1%}), {self.equivalent} equivalent, "
            f"{self.stillborn} stillborn"
        )


def score(evidences: Iterable[MutantEvidence]) -> Score:
    outcomes = [e.outcome for e in evidences]
    return Score(
        *(outcomes.count(o) for o in (Outcome.KILLED, Outcome.SURVIVED, Outcome.EQUIVALENT, Outcome.STILLBORN))
    )


def scores(evidences: Iterable[MutantEvidence], by: Callable[[MutantEvidence], str]) -> dict[str, Score]:
    """A score for each group, the groups in alphabetical order."""
    groups: dict[str, list[MutantEvidence]] = {}
    for evidence in evidences:
        if evidence.operator:
            groups.setdefault(by(evidence), []).append(evidence)
    return {name: score(groups[name]) for name in sorted(groups)}


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """The figures that stand beside the records in a document."""
    named = [(r.kernel, MutantEvidence.of(r)) for r in records]
    evidences = [e for _, e in named if e.operator]

    def counted(one: Score) -> dict[str, Any]:
        return asdict(one) | {"score": one.share}

    return {
        "total": counted(score(evidences)),
        "by_operator": {k: counted(s) for k, s in scores(evidences, lambda e: e.operator).items()},
        "by_backend": {k: counted(s) for k, s in scores(evidences, lambda e: e.backend).items()},
        "stillborn": [name for name, e in named if e.outcome is Outcome.STILLBORN],
        "survivors": [name for name, e in named if e.outcome is Outcome.SURVIVED],
    }
