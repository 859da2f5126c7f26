"""Writes records as a JUnit file, which every CI service reads, with one test case per record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as xml

from assay.check.evidence import first_seen
from assay.errors import AssayError
from assay.record import Record, Status, namesakes

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_VERDICTS = {Status.FAIL: "failure", Status.SKIPPED: "skipped", Status.COMPILED: "skipped"}


def junit(records: Sequence[Record], verb: str, refused: Sequence[AssayError] = (), strict: bool = False) -> str:
    """Return the text of the file. Compiled and skipped records count as skipped, inconclusive ones as errors: they say
    nothing about the kernel, and somebody has to look at them. So do the files and kernels that were `refused`. With
    `strict`, whatever did not pass is a failure, as it is for the exit code."""
    cases = [_case(record, namesakes(records), strict) for record in records]
    cases += [_refusal(problem, verb) for problem in refused]
    kinds = [case[0].tag if len(case) else "" for case in cases]
    counts = {
        f"{kind}s" if kind != "skipped" else kind: str(kinds.count(kind)) for kind in ("failure", "error", "skipped")
    }
    about = {"tests": str(len(cases)), "time": f"{sum(r.seconds for r in records):.3f}", **counts}
    root = xml.Element("testsuites", about)
    xml.SubElement(root, "testsuite", {"name": f"assay {verb}", **about}).extend(cases)
    xml.indent(root)
    return xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(record: Record, shared: set[str], strict: bool) -> xml.Element:
    # A failing check has a workload of its own; the name must stay the same for a CI's history.
    point = f"dtype={record.dtype}" if record.verb == "check" and record.dtype else record.workload
    target = record.evidence.get("target", "") if record.verb.startswith("inspect") else ""
    point = " ".join(filter(None, (point, target)))
    name = _text(f"{record.named(shared)} [{point}]" if point else record.named(shared))
    case = xml.Element("testcase", classname=_text(f"assay.{record.verb}"), name=name, time=f"{record.seconds:.3f}")
    for attribute in ("file", "line"):
        if record.source.get(attribute):
            case.set(attribute, _text(str(record.source[attribute])))
    built = record.verb == "inspect" and record.status is Status.COMPILED  # inspect asks for no more
    if record.status is not Status.PASS and not built:
        first, _, rest = _text(record.reason).partition("\n")
        kind = "failure" if strict else _VERDICTS.get(record.status, "error")
        verdict = xml.SubElement(case, kind, message=first, type=str(record.status))
        seen = f"first seen on {_text(seen)}" if (seen := first_seen(record)) else ""
        replay = f"replay: {_text(record.replay)}" if record.replay else ""
        verdict.text = "\n".join(filter(None, (first, rest, seen, replay)))
    return case


def _refusal(problem: AssayError, verb: str) -> xml.Element:
    place = problem.where or problem.what
    case = xml.Element("testcase", classname=f"assay.{verb}", name=_text(place), time="0.000")
    error = xml.SubElement(case, "error", message=_text(problem.what.partition("\n")[0]), type="refused")
    error.text = _text("\n".join(filter(None, (problem.what, problem.fix))))
    return case


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
