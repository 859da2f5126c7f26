"""Records as a JUnit file, read by a parser that is not ours."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped

from assay.record import Status
from assay.report.junit import junit
from storing import RECORDS, record

KINDS = {Status.FAIL: Failure, Status.SKIPPED: Skipped, Status.COMPILED: Skipped, Status.INCONCLUSIVE: Error}


@settings(max_examples=60, deadline=None)
@given(st.lists(RECORDS, max_size=4))
def test_any_records_are_read_back(records):
    (suite,) = JUnitXml.fromstring(junit(records, "check").encode())
    assert suite.tests == len(records) and suite.name == "assay check"
    assert suite.failures == sum(r.status is Status.FAIL for r in records)
    for case, made in zip(suite, records, strict=True):
        assert [type(r) for r in case.result] == ([KINDS[made.status]] if made.status in KINDS else [])


def test_a_failure_has_its_place_its_reason_and_its_replay():
    failed = record(
        "gelu/cuda:mine",
        status=Status.FAIL,
        reason="guard: it wrote outside\nof `out` \x1b[0m",
        replay="assay check k.cu --op gelu",
        source={"file": "k.cu", "line": 7},
        seconds=1.5,
    )
    (suite,) = JUnitXml.fromstring(junit([failed], "check").encode())
    (case,) = suite
    assert case.name == "gelu/cuda:mine [n=8,dtype=bf16]" and case.time == pytest.approx(1.5)
    assert (case._elem.get("file"), case._elem.get("line")) == ("k.cu", "7")
    (result,) = case.result
    assert result.message == "guard: it wrote outside" and "replay: assay check k.cu --op gelu" in result.text
    assert "\x1b" not in result.text
