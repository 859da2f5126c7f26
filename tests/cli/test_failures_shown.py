"""What failed is printed in full at the end of a command, and in the same words on the page."""

import pytest

from assay.cli.check import report
from assay.record import Record, Status
from assay.report.page import render

FAILED = Record(
    "check",
    "gelu/triton",
    "n=1,dtype=fp32",
    Status.FAIL,
    "values: wrong",
    evidence={"detector": "values", "found_at": "n=4097,dtype=fp32,values=wide"},
    replay="assay check gelu/triton --workload n=1,dtype=fp32",
)


@pytest.mark.parametrize(("found_at", "shown"), [("n=4097,dtype=fp32,values=wide", 1), ("n=1,dtype=fp32", 0), ("", 0)])
def test_the_workload_that_failed_first_is_shown_beside_a_smaller_one(found_at, shown, capsys):
    record = Record(**vars(FAILED) | {"evidence": {"found_at": found_at}})
    report([record], interrupted=False)
    assert capsys.readouterr().out.count(f"seen    first on {found_at}\n  replay") == shown
    assert render([record], title="").count("<dt>first seen</dt>") == shown
