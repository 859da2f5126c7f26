"""A bare .cu file names its op, so that one command takes several files with an op each."""

import pytest

import assay as package
from assay.catalog.called import called
from assay.catalog.select import gather, select
from assay.errors import SourceError, UsageError
from own_op import OP

LAUNCHED = "// assay: k<T><<<1, 256>>>(x, out)\ntemplate <typename T> __global__ void k(const T* x, T* y) {}\n"
OWN = "// assay: op ../my_ops.py:row_sum\n" + LAUNCHED
LIBRARYS = LAUNCHED + "  //assay:  op gelu\n"


@pytest.fixture
def files(write, tmp_path):
    (tmp_path / "kernels").mkdir()
    write("my_ops.py", OP)
    return write("kernels/own.cu", OWN), write("kernels/librarys.cu", LIBRARYS)


def test_several_files_with_an_op_each_are_named_in_one_command(files, tmp_path):
    (own, own_op), (librarys, librarys_op) = select(files)
    assert (own.name, own_op.source) == ("row_sum/cuda:own", str(tmp_path / "my_ops.py"))
    assert (librarys.name, librarys_op.name) == ("gelu/cuda:librarys", "gelu")
    assert [len(kernel.launches) for kernel in (own, librarys)] == [1, 1]
    for kernel, op in ((own, own_op), (librarys, librarys_op)):
        file, _, asked = called(kernel, op).split()
        ((again, its_op),) = select([file], asked)
        assert (again, its_op.source) == (kernel, op.source)


def test_op_on_the_command_line_is_for_files_that_do_not_name_theirs(files, write):
    plain = write("plain.cu", LAUNCHED)
    selection = gather([*files, plain], "gelu")
    assert [kernel.name for kernel, _ in selection.choices] == ["gelu/cuda:librarys", "gelu/cuda:plain"]
    (refused,) = selection.refused
    assert isinstance(refused, UsageError) and "own.cu:1: the file says that it computes ../my_ops.py:row_sum" in str(
        refused
    )


def test_an_op_that_is_named_twice_or_is_nowhere_is_refused(write):
    with pytest.raises(SourceError, match="the op is named on line 1 and on line 2"):
        select([write("two.cu", "// assay: op gelu\n// assay: op silu\n" + LAUNCHED)])
    with pytest.raises(SourceError, match=r"gone\.cu:1: no op called 'gelo'\n  → did you mean gelu"):
        select([write("gone.cu", "// assay: op gelo\n" + LAUNCHED)])


def test_inspect_builds_a_file_for_the_op_that_it_names(write):
    (record,) = package.inspect(write("mine.cu", LIBRARYS))
    assert (record.kernel, record.workload) == ("gelu/cuda:mine", "n=4194304,dtype=fp32")
    assert record.status == "compiled", record.reason


def test_the_file_of_an_op_that_is_not_there_is_named_with_where_it_was_said(write):
    with pytest.raises(UsageError, match=r"--op gone\.py:row_sum: no file called gone\.py\n  → the path is relative"):
        select([write("plain.cu", LAUNCHED)], "gone.py:row_sum")


def test_the_example_of_a_launch_comment_is_for_this_kernel(write):
    with pytest.raises(SourceError, match=r"e\.g\. `// assay: k<<<"):
        select([write("no_template.cu", "__global__ void k(const float* x, float* y) {}")], "gelu")
    with pytest.raises(SourceError, match=r"e\.g\. `// assay: k<T><<<"):
        select([write("template.cu", LAUNCHED.partition("\n")[2])], "gelu")


VARIANTS = """// assay: op gelu
// assay: variant first
// assay: k<T><<<1, 256>>>(x, out)
//assay:  variant  second
// assay: k<T><<<2, 128>>>(x, out)
// assay: k<T><<<3, 128>>>(x, out)
template <typename T> __global__ void k(const T* x, T* y) {}
"""


def test_variants_in_one_file_are_kernels_of_their_own(write):
    file = write("two.cu", VARIANTS)
    choices = select([file])
    assert [(k.name, k.line, len(k.launches)) for k, _ in choices] == [
        ("gelu/cuda:first", 3, 1),
        ("gelu/cuda:second", 5, 2),
    ]
    for kernel, op in choices:
        named, _, asked = called(kernel, op).split()
        assert select([named], asked) == [(kernel, op)], "a replay runs this one alone"
    with pytest.raises(UsageError, match=r"two\.cu has no kernel gelu/cuda:third\n  → .*gelu/cuda:first"):
        select([f"{file}:gelu/cuda:third"])


@pytest.mark.parametrize(
    ("before", "after", "refusal"),
    [
        ("// assay: op gelu\n", "// assay: k<T><<<1, 1>>>(x, out)\n", r"two\.cu:1: this launch is of no variant"),
        ("variant  second", "variant first", r"two\.cu:4: the variant first begins on line 2 and on line 4"),
        ("variant  second", "variant two", r"two\.cu:4: the variant two has the name of the file"),
        ("template", "// assay: variant last\ntemplate", r"two\.cu:7: the variant last has no launch"),
    ],
)
def test_a_variant_that_is_not_clear_is_refused(before, after, refusal, write):
    with pytest.raises(SourceError, match=refusal):
        select([write("two.cu", VARIANTS.replace(before, after))], "gelu")


def test_variants_are_built_and_recorded_beside_each_other(write):
    records = list(package.check(write("two.cu", VARIANTS), dtypes="fp32", workloads=2, keep=False))
    assert {(r.kernel, r.source["line"]) for r in records} == {("gelu/cuda:first", 3), ("gelu/cuda:second", 5)}
    assert {r.status for r in records} <= {"compiled", "fail", "skipped"}
    assert len({r.replay for r in records}) == 2
