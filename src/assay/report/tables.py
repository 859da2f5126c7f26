"""The page's tables as data: provenance, the selftest, and every record."""

from collections.abc import Sequence
from typing import Any

from assay import units
from assay.check.evidence import CheckEvidence, first_seen
from assay.record import Record
from assay.report import rows
from assay.selftest.evidence import SelftestEvidence


def outcome(record: Record) -> tuple[str, float | None]:
    """Return the main figure of a record and its sort key: a time, the error's share of its tolerance, or the
    detector."""
    if record.verb == "bench" and record.median:
        return units.si(record.median, "s"), record.median
    if str(record.status) == "fail":
        return record.detector, None
    if record.verb == "check" and (worst := CheckEvidence.of(record).worst_share) is not None:
        return f"{units.share(worst)} of tolerance", worst
    return "", None


def every(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return one row per record."""
    result = []
    for record in records:
        says, order = outcome(record)
        result.append(
            rows.common(record)
            | {
                "verb": record.verb,
                "says": says,
                "order": order,
                "reason": record.reason,
                "seen": first_seen(record),
                "replay": record.replay,
                "run": record.run,
                "time": str(record.provenance.get("time", "")),
                "took": units.si(record.seconds or None, "s", 3),
                "source": _source(record),
            }
        )
    return result


def _source(record: Record) -> str:
    file, line = record.source.get("file"), record.source.get("line")
    return f"{file}:{line}" if file and line else str(file or "")


def selftests(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return each wrong kernel: the detector that should catch it, the one that did, and whether its fixed twin
    passes."""
    return [
        rows.common(record)
        | {
            "name": record.kernel,
            "entry": evidence.entry or record.reason,
            "detector": evidence.detector,
            "caught_by": evidence.caught_by or units.NOTHING,
            "twin": evidence.twin or units.NOTHING,
            "finding": evidence.finding or record.reason,
            "replay": record.replay,
        }
        for record in records
        if record.verb == "selftest" and (evidence := SelftestEvidence.of(record))
    ]


MADE_WITH = {
    "gpu": "GPU",
    "driver": "Driver",
    "cpu": "CPU",
    "cores": "Cores",
    "system": "System",
    "python": "Python",
    "packages": "Packages",
    "assay": "Assay",
}


def machines(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return where records were made: one block per machine and toolchain, with its runs."""
    blocks: dict[str, dict[str, Any]] = {}
    for record in records:
        made = record.provenance
        facts = {name: made[key] for key, name in MADE_WITH.items() if made.get(key)}
        facts = {name: dict(v) if isinstance(v, dict) else str(v) for name, v in facts.items()}
        block = blocks.setdefault(str(facts), {"facts": facts, "runs": {}, "commits": {}})
        other = record.commit if record.commit != record.assay_commit else ""
        for name, commit in (("Assay's commit", record.assay_commit), ("Commit of the source", other)):
            if commit:
                block["commits"].setdefault(name, {})[commit] = None
        run = block["runs"].setdefault((record.run, record.verb), {"records": 0, "times": [], "seeds": set()})
        run["records"] += 1
        run["times"] += [str(made["time"])] if made.get("time") else []
        run["seeds"] |= {made["seed"]} if "seed" in made else set()
    for block in blocks.values():
        block["commits"] = {name: list(commits) for name, commits in block["commits"].items()}
        block["runs"] = [
            {
                "run": run,
                "verb": verb,
                "records": r["records"],
                "seeds": ", ".join(sorted(map(str, r["seeds"]))),
                "first": min(r["times"], default=""),
                "last": max(r["times"], default=""),
            }
            for (run, verb), r in sorted(block["runs"].items())
        ]
    return list(blocks.values())
