"""Chooses the winner by compare's rule, and names the finalists that the rule cannot distinguish from it."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assay.bench.evidence import BenchEvidence
from assay.bench.statistics import of_rounds
from assay.compare.rule import Side, Verdict, judge
from assay.record import Record
from assay.tune.evidence import Choice, Ranked
from assay.tune.space import Configuration, Key, key, label
from assay.units import duration

MARGIN = 0.05
"""Configurations within this share of the best time are timed again, together."""
FINALISTS = 4
"""The most configurations that are timed again, besides the default."""
_RULE = "the default, unless another is FASTER"
"""Part of a choice's hash, so that a choice by an earlier rule is made again."""


@dataclass(frozen=True)
class Winner:
    configuration: Configuration
    record: Record
    ranking: list[Ranked]
    """The finalists, the winner first, then by time."""
    gain: float | None = None
    """The default's time divided by the winner's, in the same rounds."""
    gain_verdict: str = ""

    @property
    def ties(self) -> list[Configuration]:
        """Finalists that the rule cannot distinguish from the winner."""
        return [r.parameters for r in self.ranking if r.verdict in (Verdict.SAME, Verdict.AMBIGUOUS)]


def finalists(times: Mapping[Key, float], spreads: Mapping[Key, float], default: Key) -> list[Key]:
    """Return the configurations to time again, together: those close to the best, and the default as a reference. A
    time is known only within its spread, so a configuration whose interval reaches the best one's is close to it."""
    if not times:
        return []
    ordered = sorted(times, key=lambda k: times[k])
    best = ordered[0]
    reach = times[best] * (1 + max(MARGIN, spreads.get(best, 0.0)))
    close = [k for k in ordered if times[k] * (1 - min(0.5, spreads.get(k, 0.0))) <= reach][:FINALISTS]
    return [*close, *([default] if default in times and default not in close else [])]


@dataclass(frozen=True)
class Decision:
    winner: Winner | None
    """None if no configuration is right."""
    again: Mapping[Key, Record]
    """The finalists' records from the rounds in which they were timed together."""

    @property
    def lost(self) -> list[Key]:
        """Finalists that failed when they were timed again."""
        return [k for k, r in self.again.items() if r.failed]


def decided(
    passed: Mapping[Key, Record],
    configurations: Mapping[Key, Configuration],
    default: Key,
    timed: Callable[[Sequence[Configuration]], Mapping[Key, Record]],
) -> Decision:
    """Return the winner among the right configurations that were timed. `timed` is a function that times some
    together."""
    times = {k: r.median for k, r in passed.items() if r.median}
    last = finalists(times, {k: spread(r) or 0.0 for k, r in passed.items()}, default)
    again = timed([configurations[k] for k in last]) if len(last) > 1 else {k: passed[k] for k in last}
    winner = chosen(again or passed, configurations, default)
    if winner is None:
        lost = {k for k, r in again.items() if r.failed}
        winner = chosen({k: r for k, r in passed.items() if k not in lost}, configurations, default)
    return Decision(winner, again)


def spread(record: Record) -> float | None:
    """Return half the interval of a record's time, as a share of that time."""
    if not record.median or not record.interval:
        return None
    return (record.interval[1] - record.interval[0]) / 2 / record.median


def chosen(records: Mapping[Key, Record], configurations: Mapping[Key, Configuration], default: Key) -> Winner | None:
    """Return the winner among records of the same rounds: the default, unless the rule calls others `FASTER`; then the
    fastest of these. Nothing is changed without evidence. Without a time of the default, the fastest wins."""
    timed = {k: r for k, r in records.items() if r.median and not r.failed}
    if not timed:
        return None
    ordered = sorted(timed, key=lambda k: timed[k].median or 0.0)
    first, gain, verdict = ordered[0], None, ""
    if default in timed:
        changes = _against(default, ordered, timed)
        first = next((k for k in ordered if k != default and changes[k][0] is Verdict.FASTER), default)
    if default in timed and first != default:
        gain, verdict = _gain(timed[default], timed[first]), str(Verdict.FASTER)
    ordered = [first, *(k for k in ordered if k != first)]
    verdicts = _against(first, ordered, timed)
    ranking = [_ranked(configurations[k], timed[k], verdicts.get(k)) for k in ordered]
    return Winner(configurations[first], timed[first], ranking, gain, verdict)


def _against(winner: Key, ordered: Sequence[Key], timed: Mapping[Key, Record]) -> dict[Key, tuple[Verdict, str]]:
    """Return the rule's verdict on each of the others, as a change from the winner."""
    others = [k for k in ordered if k != winner]
    if not others:
        return {}
    changes = judge([(_side(timed[winner]), _side(timed[k])) for k in others])
    return {k: (change.verdict, change.why) for k, change in zip(others, changes, strict=True)}


def _side(record: Record) -> Side:
    clocks = BenchEvidence.of(record).clocks
    hertz = clocks.sm_mhz * 1e6 if clocks and clocks.sm_mhz else None
    return Side([statistics.median(r) for r in record.samples or [] if r], hertz)


def _ranked(configuration: Configuration, record: Record, verdict: tuple[Verdict, str] | None) -> Ranked:
    assert record.median is not None
    interval = record.interval or (record.median, record.median)
    which, why = (str(verdict[0]), verdict[1]) if verdict else ("", "")
    return Ranked(dict(configuration), record.median, interval, which, why)


def _gain(default: Record, winner: Record) -> float:
    """Return the median over rounds of the ratio of the two times: both were measured in the same rounds."""
    pairs = zip(default.samples or [], winner.samples or [], strict=False)
    return of_rounds([statistics.median(a) / statistics.median(b) for a, b in pairs if a and b]).median


def described(choice: Choice) -> str:
    """Describe the choice in one sentence. Where configurations are tied, it names them and says why one of them is
    recommended."""
    kept = choice.default == choice.winner
    timed = f"{label(choice.winner)}, {duration(choice.median or 0.0)}"
    if tied := choice.ties:
        names = "; ".join(map(label, [choice.winner, *tied]))
        why = "the fastest of them" if choice.gain is None else "the fastest of them that is faster than the default"
        why = "the default, because none is faster" if kept else why
        parts = [f"{len(tied) + 1} configurations are tied: {names}; recommended: {timed}, {why}"]
    else:
        parts = [f"the best is {timed}" + ", the default" * kept]
    if choice.gain is not None:
        parts.append(f"{choice.gain:.3g}× the default's speed ({choice.gain_verdict})")
    if choice.lost:
        parts.append(f"{len(choice.lost)} failed when timed again")
    parts.append(f"{choice.measured} of {choice.configurations} configurations measured ({choice.strategy})")
    return ", ".join(parts)


def considered(times: Mapping[Key, float]) -> str:
    """Return a hash of configurations, their times and the rule, so that the same choice is not made twice."""
    return hashlib.sha256(repr((_RULE, sorted(times.items()))).encode()).hexdigest()[:16]


def configurations_by_key(configurations: Sequence[Configuration]) -> dict[Key, Configuration]:
    return {key(c): c for c in configurations}
