"""Records as a JUnit file, read by a parser that is not ours."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped

from assay.errors import UsageError
from assay.record import Status
from assay.report.junit import junit
from storing import RECORDS, record

KINDS = {Status.FAIL: Failure, Status.SKIPPED: Skipped, Status.COMPILED: Skipped, Status.INCONCLUSIVE: Error}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(RECORDS, max_size=4))
def test_any_records_are_read_back(records):
    (suite,) = JUnitXml.fromstring(junit(records, "check").encode())
    assert suite.tests == len(records) and suite.name == "assay check"
    assert suite.failures == sum(r.status is Status.FAIL for r in records)
    for case, made in zip(suite, records, strict=True):
        assert [type(r) for r in case.result] == ([KINDS[made.status]] if made.status in KINDS else [])


def test_with_strict_whatever_did_not_pass_is_a_failure():
    """As for the exit code: a job that fails has a failure to show."""
    records = [record(f"gelu/cuda:{s}", status=s, reason="why") for s in Status]
    (suite,) = JUnitXml.fromstring(junit(records, "check", strict=True).encode())
    assert suite.failures == len(Status) - 1 and suite.errors == suite.skipped == 0


def test_a_failure_has_its_place_its_reason_and_its_replay():
    failed = record(
        "gelu/cuda:mine",
        status=Status.FAIL,
        reason="guard: it wrote outside\nof `out` \x1b[0m",
        replay="assay check k.cu --op gelu",
        source={"file": "k.cu", "line": 7},
        seconds=1.5,
        verb="check",
        evidence={"found_at": "n=4097,dtype=bf16"},
    )
    (suite,) = JUnitXml.fromstring(junit([failed], "check").encode())
    (case,) = suite
    assert case.name == "gelu/cuda:mine [dtype=bf16]" and case.time == pytest.approx(1.5)
    assert (case._elem.get("file"), case._elem.get("line")) == ("k.cu", "7")
    (result,) = case.result
    assert result.message == "guard: it wrote outside" and "replay: assay check k.cu --op gelu" in result.text
    assert "first seen on n=4097,dtype=bf16\n" in result.text
    assert "\x1b" not in result.text


def test_the_name_of_a_check_does_not_depend_on_the_workload_that_fails():
    failed = record("gelu/cuda:mine", verb="check", status=Status.FAIL)
    passed = record("gelu/cuda:mine", verb="check", workload="dtype=bf16")
    names = [next(iter(next(iter(JUnitXml.fromstring(junit([r], "check").encode()))))).name for r in (failed, passed)]
    assert names == ["gelu/cuda:mine [dtype=bf16]"] * 2


def test_what_was_refused_is_an_error():
    problem = UsageError("no file called k.cu", fix="check the path")
    (suite,) = JUnitXml.fromstring(junit([record("gelu/torch")], "check", [problem]).encode())
    assert (suite.tests, suite.errors) == (2, 1)
    (result,) = list(suite)[-1].result
    assert result.message == "no file called k.cu" and "check the path" in result.text


def test_builds_for_several_targets_are_cases_of_their_own():
    targets = ("sm_80", "sm_90")
    built = [record("k/cuda", verb="inspect", status=Status.COMPILED, evidence={"target": t}) for t in targets]
    (suite,) = JUnitXml.fromstring(junit(built, "inspect").encode())
    names = [case.name for case in suite]
    assert len(set(names)) == 2 and all(t in name for t, name in zip(targets, names, strict=True))
