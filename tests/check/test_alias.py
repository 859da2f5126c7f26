"""A kernel that returns its result must return memory that nobody else has."""

import pytest

import assay

SOURCE = """
import torch
from assay import kernel

_KEPT = {{}}

@kernel("relu", backend="torch", variant="returning", returns=True)
def returning(x):
    {body}
"""
BODIES = {
    "its input": ("return x if bool((x >= 0).all()) else torch.relu(x)", "the memory of `x`"),
    "a view of its input": ("return x[:] if bool((x >= 0).all()) else torch.relu(x)", "the memory of `x`"),
    "a buffer of its own": (
        "return _KEPT.setdefault((x.shape, x.dtype), torch.empty_like(x)).copy_(torch.relu(x))",
        "the result of the call before",
    ),
}


def checked(folder, body):
    file = folder / "returning.py"
    file.write_text(SOURCE.format(body=body))
    (record,) = assay.check(file, dtypes="fp32", workloads=12)
    return record


@pytest.mark.parametrize("what", BODIES)
def test_what_somebody_else_holds_is_refused(tmp_path, what):
    body, named = BODIES[what]
    record = checked(tmp_path, body)
    assert record.evidence["detector"] == "alias" and named in record.reason


def test_a_result_of_its_own_passes(tmp_path):
    assert checked(tmp_path, "return torch.relu(x)").status == "pass"
