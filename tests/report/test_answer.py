"""The top of the page."""

from assay.record import Record, Status
from assay.report import answer


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
