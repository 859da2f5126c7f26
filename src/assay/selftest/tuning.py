"""Runs the entries for `tune`, in which one configuration of the wrong kernel is wrong, or slower than it seems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from assay.record import Record, Status
from assay.selftest.entry import CorpusEntry
from assay.tune.evidence import TuneEvidence
from assay.tune.planning import Options, plan
from assay.tune.space import label
from assay.tune.verb import run as tune


def records(entry: CorpusEntry, run: str, seed: int) -> Iterator[Record]:
    """Yield one record for each of the two kernels: that of the first configuration that failed, else the choice."""
    options = Options(
        workload=entry.workload,
        workloads=2,
        budget=0.3,
        threads=1,
        again=True,
        seed=seed,
        seconds=entry.seconds,
        run=run,
    )
    for which, choice in entry.kernels().items():
        made = list(tune(plan([choice], options), options))
        failed = next((r for r in made if r.failed), None)
        last = failed or made[-1]
        yield _lost(last, entry) if which == "wrong" and entry.slower and not failed else last


def _lost(choice: Record, entry: CorpusEntry) -> Record:
    """Return the choice as a failure of the configuration that had to lose, if it lost."""
    assert entry.slower is not None
    chosen = TuneEvidence.of(choice).choice
    if chosen is None or chosen.winner == entry.slower:
        return choice
    beaten = next((r for r in chosen.ranking or [] if r.parameters == entry.slower), None)
    if beaten is not None and beaten.verdict != "SLOWER":
        return choice
    reason = f"slower: {label(entry.slower)} lost to {label(chosen.winner)}"
    evidence = choice.evidence | {"detector": "slower"}
    return replace(choice, status=Status.FAIL, reason=reason, evidence=evidence)
