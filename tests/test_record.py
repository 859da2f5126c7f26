"""What a record says about itself: the parts of its kernel's address, its dtype, its device."""

import pytest

from assay.record import Record, Status


def record(kernel="gelu/triton", workload="n=5,dtype=bf16", verb="check", **more):
    return Record(verb, kernel, workload, Status.PASS, "", **more)


@pytest.mark.parametrize(
    ("kernel", "op", "backend", "variant"),
    [
        ("gelu/triton", "gelu", "triton", ""),
        ("conv2d/cuda:inline_ptx", "conv2d", "cuda", "inline_ptx"),
        ("gelu/torch (mine.py)", "gelu", "torch", ""),
        ("gelu/torch:mine (mine.py)", "gelu", "torch", "mine"),
        ("mnist-cnn", "", "", ""),
        ("bert/eager", "bert", "", ""),
    ],
)
def test_an_address_is_taken_apart_in_one_place(kernel, op, backend, variant):
    found = record(kernel)
    assert (found.op, found.backend, found.variant) == (op, backend, variant)


def test_an_entry_of_selftest_is_about_the_kernel_it_names_and_a_machine_about_none():
    entry = record("missing_barrier", verb="selftest", evidence={"kernel": "softmax/cuda:wrong"})
    assert (entry.op, entry.backend, entry.variant) == ("softmax", "cuda", "wrong")
    assert (record("machine/dram.read", verb="machine").op, record("machine/dram.read", verb="machine").backend) == (
        "",
        "",
    )


def test_the_workload_by_its_parts():
    assert record(workload="rows=3,cols=5,dtype=bf16,values=wide").point == {
        "rows": "3",
        "cols": "5",
        "dtype": "bf16",
        "values": "wide",
    }
    assert record().dtype == "bf16" and record(workload="").dtype == ""


@pytest.mark.parametrize(
    ("evidence", "provenance", "device"),
    [
        ({"device": "cuda"}, {"gpu": "NVIDIA H200", "cpu": "Xeon"}, "NVIDIA H200"),
        ({"device": "cpu"}, {"gpu": "NVIDIA H200", "cpu": "Xeon"}, "Xeon"),
        ({}, {"gpu": "NVIDIA H200", "cpu": "Xeon"}, "NVIDIA H200"),
        ({}, {"gpu": None, "cpu": "Neoverse-N1"}, "Neoverse-N1"),
        ({}, {}, ""),
    ],
)
def test_a_record_taken_beside_a_gpu_may_be_about_the_cpu(evidence, provenance, device):
    assert record(evidence=evidence, provenance=provenance).device == device


def test_only_a_failure_has_failed():
    for status in Status:
        assert Record("check", "gelu/torch", "", status, "").failed == (status == "fail")


@pytest.mark.parametrize(
    ("source", "provenance", "commit", "assay_commit"),
    [
        ({"file": "mine.py", "commit": "a1"}, {"assay_commit": "b2", "commit": "b2"}, "a1", "b2"),
        ({"file": "assay/library/gelu/triton.py"}, {"assay_commit": "b2", "commit": "b2"}, "b2", "b2"),
        ({"file": "mine.py"}, {"commit": "b2"}, "", "b2"),
        ({"file": "assay/library/gelu/triton.py"}, {"commit": "b2"}, "b2", "b2"),
        ({}, {}, "", ""),
    ],
)
def test_the_commit_of_the_source_is_not_that_of_assay(source, provenance, commit, assay_commit):
    """The third and fourth are as older versions wrote them."""
    made = record(source=source, provenance=provenance)
    assert (made.commit, made.assay_commit) == (commit, assay_commit)
