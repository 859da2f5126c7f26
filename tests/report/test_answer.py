"""The top of the page."""

from assay.record import Record, Status
from assay.report import answer
from assay.report.page import render


def checked(kernel, status=Status.PASS, dtype="fp32"):
    return Record("check", kernel, f"dtype={dtype}", status, "")


def test_several_ops_have_a_sentence_each_and_one_op_has_the_headline_alone():
    mixed = [checked("gelu/cuda:a", Status.FAIL), checked("gelu/cuda:b"), checked("my_sum/torch")]
    assert answer.headline(mixed) == "2 of 3 kernels pass; 1 failed."
    assert answer.by_op(mixed) == ["gelu: 1 of 2 kernels pass; 1 failed", "my_sum: 1 of 1 kernel passes"]
    assert answer.by_op(mixed[:2]) == []


def test_of_many_ops_those_with_a_failure_are_named():
    many = [checked(f"op{i}/torch", Status.FAIL if i == 3 else Status.PASS) for i in range(9)]
    assert answer.by_op(many) == ["op3: 0 of 1 kernel passes; 1 failed"]


def test_a_kernel_that_is_written_for_one_dtype_passes_if_it_passes_there():
    only_fp32 = [checked("relu/cuda"), checked("relu/cuda", Status.SKIPPED, "bf16")]
    elsewhere = [checked("relu/cupy", Status.SKIPPED, dtype) for dtype in ("fp32", "bf16")]
    assert answer.headline(only_fp32) == "1 of 1 kernel passes."
    assert answer.headline(only_fp32 + elsewhere) == "1 of 2 kernels pass; 1 skipped."


def timed(kernel, seconds, run, workload="n=8,dtype=fp32"):
    return Record("bench", kernel, workload, Status.PASS, "", run, median=seconds, interval=(seconds, seconds))


def test_a_kernel_is_the_fastest_only_among_those_that_were_timed_in_the_same_run():
    """The machine of another run may have been busier or its clock slower."""
    monday = [timed("gelu/torch", 4e-6, "20260101-1"), timed("gelu/cuda", 3e-6, "20260101-1")]
    tuesday = timed("gelu/triton", 2e-6, "20260102-1")
    (told,) = answer.fastest([*monday, tuesday])
    assert (told["kernel"], told["rivals"], told["not_together"]) == ("gelu/cuda", 1, ["gelu/triton"])
    assert "a shorter time of gelu/triton is from another run" in render([*monday, tuesday], title="")
    (told,) = answer.fastest([*monday, timed("gelu/triton", 5e-6, "20260102-1")])
    assert told["kernel"] == "gelu/cuda" and not told["not_together"]
    assert "from another run" not in render(monday, title="")


def test_of_runs_that_timed_as_many_kernels_the_newest_counts():
    runs = [
        record
        for run, cuda, triton in (("20260101-1", 1e-6, 2e-6), ("20260102-1", 4e-6, 3e-6))
        for record in (timed("gelu/cuda", cuda, run), timed("gelu/triton", triton, run))
    ]
    (told,) = answer.fastest(runs)
    assert told["kernel"] == "gelu/triton" and not told["not_together"], "gelu/cuda was timed beside it, too"


def test_the_case_is_one_at_which_a_run_timed_several_kernels():
    """At the larger case there are more kernels, but each was timed alone."""
    large = [timed(f"gelu/{way}", 1e-6, f"2026010{i}-1", "n=99,dtype=fp32") for i, way in enumerate(("a", "b", "c"))]
    together = [timed("gelu/cuda", 3e-6, "20260101-9"), timed("gelu/triton", 2e-6, "20260101-9")]
    (told,) = answer.fastest([*large, *together])
    assert told["kernel"] == "gelu/triton"
