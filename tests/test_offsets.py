"""Where rows of unlike lengths begin: drawn so that each kind of values gives other lengths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import Axis, Op, Tensor
from assay.dtype import dtype
from assay.errors import UsageError
from assay.inputs import generate
from assay.workload import VALUES, Workload

FP32 = dtype("fp32")


def ragged() -> Op:
    return Op(
        "ragged",
        lambda start: start,
        {"rows": Axis(), "entries": Axis()},
        {"start": Tensor("starts", dtype="int32", index="entries", form="offsets")},
        {"out": Tensor("rows")},
        derived={"starts": lambda w: w.rows + 1},
    )


@given(st.integers(0, 300), st.integers(0, 5000), st.sampled_from(sorted(VALUES)), st.integers(0, 99))
def test_offsets_ascend_from_0_to_the_length_of_the_axis(rows, entries, kind, seed):
    workload = Workload(ragged(), (("rows", rows), ("entries", entries)), FP32, (), seed, kind)
    start = generate(workload)["start"]
    assert len(start) == rows + 1 and start[0] == 0 and (start.diff() >= 0).all()
    assert rows == 0 or start[-1] == entries


def test_rows_are_empty_full_and_of_unlike_lengths():
    def lengths(kind):
        drawn = generate(Workload(ragged(), (("rows", 40), ("entries", 1000)), FP32, (), 3, kind))
        return drawn["start"].diff().tolist()

    assert len(set(lengths("normal"))) > 10
    assert lengths("constant").count(0) >= 38 and 1000 in lengths("ends")


def test_offsets_name_the_axis_that_they_divide():
    with pytest.raises(UsageError, match="offsets of what"):
        Tensor("starts", dtype="int32", form="offsets")
