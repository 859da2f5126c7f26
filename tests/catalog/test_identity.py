"""An op is told from another by its name and its file, a kernel by its address and its file: whatever is named in one
command, every kernel is judged as what it is, or refused with a sentence."""

import json
import textwrap

import pytest

from assay.catalog.select import gather, select
from assay.errors import SourceError
from assay.record import Record, Status, namesakes
from command import assay

OP = """
import torch
from assay import Axis, Tensor, kernel, op

@op(axes={{"rows": Axis(), "cols": Axis(min=1)}}, inputs={{"x": Tensor("rows", "cols")}},
    outputs={{"out": Tensor("rows")}}, magnitude=lambda x: x.abs().sum(-1), terms=lambda w: w.cols, dtypes=("fp32",))
def {name}(x):
    return {formula}
"""
ELEMENTWISE = """
import torch
from assay import Axis, Tensor, kernel, op

@op(axes={{"n": Axis()}}, inputs={{"x": Tensor("n")}}, outputs={{"out": Tensor("n")}}, dtypes=("fp32",))
def {name}(x):
    return {formula}
"""
KERNEL = """
import torch
from assay import kernel

@kernel("{op}"{more})
def {name}(x, *, out):
    out.copy_({formula})
"""
SUM, SIZES = "x.sum(-1)", "x.abs().sum(-1)"
GELU, DOUBLE = "torch.nn.functional.gelu(x)", "x * 2"


@pytest.fixture
def put(tmp_path):
    def write(name, *parts):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(parts))
        return file

    return write


def op(formula, name="rowsum"):
    return OP.format(name=name, formula=formula)


def kernel(formula, name="mine", of="rowsum", more=""):
    return KERNEL.format(op=of, name=name, formula=formula, more=more)


def verdicts(*arguments, verb="check", more=("--workloads", "4")):
    """(exit code, {(file, kernel): status}) of one command."""
    done = assay(verb, *arguments, *more, "--json")
    document = json.loads(done.out)
    found = {(r["source"]["file"].rpartition("/")[2], r["kernel"]): r["status"] for r in document["records"]}
    assert len(found) == len(document["records"]), "two records for one kernel"
    return done.code, found, [r["what"] for r in document.get("refused", [])]


@pytest.mark.slow
def test_two_files_declare_an_op_of_the_same_name_and_each_kernel_is_held_against_its_own(put):
    a = put("a.py", op(SUM), kernel(SUM), kernel(SIZES, "wrong"))
    b = put("b.py", op(SIZES), kernel(SIZES), kernel(SUM, "wrong"))
    right = {
        ("a.py", "rowsum/torch:mine"): "pass",
        ("a.py", "rowsum/torch:wrong"): "fail",
        ("b.py", "rowsum/torch:mine"): "pass",
        ("b.py", "rowsum/torch:wrong"): "fail",
    }
    assert verdicts(a, b) == (1, right, [])
    assert verdicts(b, a) == (1, right, [])


def test_a_kernel_is_not_held_against_its_neighbours_limits(put):
    """The neighbour's op of the same name allows a thousand times the error."""
    loose = op(SUM).replace("x.abs().sum(-1), terms", "1000 * x.abs().sum(-1), terms")
    sloppy = "x.sum(-1) * (1 + 1e-5)"
    a, b = put("a.py", loose, kernel(sloppy)), put("b.py", op(SUM), kernel(sloppy))
    for files in ((a, b), (b, a)):
        _, found, _ = verdicts(*files)
        assert found == {("a.py", "rowsum/torch:mine"): "pass", ("b.py", "rowsum/torch:mine"): "fail"}


def test_two_files_use_the_same_variant_and_are_shown_with_their_files(put):
    a = put("a.py", kernel(GELU, of="gelu", more=', variant="fast"'))
    b = put("deep/a.py", kernel(DOUBLE, of="gelu", more=', variant="fast"'))
    done = assay("check", a, b, "--workloads", "4", "--dtype", "fp32")
    assert done.code == 1
    assert f"gelu/torch:fast ({a}) fp32 ✓ pass" in done.said
    assert f"gelu/torch:fast ({b}) fp32 ✗ fail" in done.said
    alone = assay("check", a, "--workloads", "4", "--dtype", "fp32")
    assert "gelu/torch:fast fp32 ✓ pass" in alone.said


def test_a_file_given_twice_or_by_a_link_is_judged_once(put, tmp_path):
    a = put("a.py", op(SUM), kernel(SUM))
    link = tmp_path / "link.py"
    link.symlink_to(a)
    for named in ((a, a), (a, link), (link, a), (a, tmp_path / "deep" / ".." / "a.py")):
        (tmp_path / "deep").mkdir(exist_ok=True)
        ((chosen, _),) = select(named)
        assert chosen.file == a.resolve()


def test_a_users_op_may_be_called_like_one_of_the_library(put):
    own = ELEMENTWISE.format(name="gelu", formula=DOUBLE)
    mine = put("mine.py", own, kernel(DOUBLE, of="gelu"), kernel(GELU, "wrong", of="gelu"))
    code, found, refused = verdicts(mine, "gelu/torch", more=("--workloads", "4", "--dtype", "fp32"))
    assert (code, refused) == (1, [])
    assert found == {
        ("mine.py", "gelu/torch:mine"): "pass",
        ("mine.py", "gelu/torch:wrong"): "fail",
        ("torch.py", "gelu/torch"): "pass",
    }


def test_a_kernel_that_could_mean_the_librarys_op_or_a_neighbours_is_refused_and_the_others_are_judged(put):
    own = put("own.py", ELEMENTWISE.format(name="gelu", formula=DOUBLE), kernel(DOUBLE, of="gelu"))
    other = put("other.py", kernel(GELU, "theirs", of="gelu"))
    code, found, refused = verdicts(own, other)
    assert code == 2 and found == {("own.py", "gelu/torch:mine"): "pass"}
    assert refused == [f"the op gelu is declared by {own} and by the library: which one is meant is not clear"]
    code, found, _ = verdicts(other, more=("--workloads", "4", "--dtype", "fp32"))
    assert (code, found) == (0, {("other.py", "gelu/torch:theirs"): "pass"})


@pytest.mark.slow
def test_a_file_of_ops_serves_the_kernels_named_with_it(put):
    ops = put("ops.py", op(SIZES))
    named = put("named.py", kernel(SIZES), kernel(SUM, "wrong"))
    right = {("named.py", "rowsum/torch:mine"): "pass", ("named.py", "rowsum/torch:wrong"): "fail"}
    assert verdicts(named, ops) == (1, right, []) == verdicts(ops, named)
    done = assay("check", named, ops, "--workloads", "4", "--json")
    wrong = next(r for r in json.loads(done.out)["records"] if r["status"] == "fail")
    again = assay(*wrong["replay"].split()[1:], "--json")
    assert {r["kernel"]: r["status"] for r in json.loads(again.out)["records"]}["rowsum/torch:wrong"] == "fail"


def test_two_ops_that_a_kernel_could_mean_are_named(put):
    files = put("a.py", op(SUM)), put("b.py", op(SIZES)), put("c.py", kernel(SUM))
    found = gather(files)
    assert not found.choices
    assert (
        "declared by" in found.refused[0].what and "a.py" in found.refused[0].what and "b.py" in found.refused[0].what
    )


@pytest.mark.parametrize("second", [kernel(SIZES), kernel(SIZES, "other", more=', variant="mine"')])
def test_two_kernels_of_one_file_with_one_address_are_refused_with_both_lines(put, second):
    file = put("a.py", op(SUM), kernel(SUM), second, kernel(SUM, "third"))
    found = gather([file])
    assert [k.name for k, _ in found.choices] == ["rowsum/torch:third"]
    (problem,) = found.refused
    text = file.read_text().splitlines()
    where = [i for i, line in enumerate(text, 1) if line.startswith("def ") and "out" in line][:2]
    assert problem.what == f"rowsum/torch:mine is defined on line {where[0]} and again on line {where[1]}"
    with pytest.raises(SourceError):
        select([file])


def test_an_op_declared_twice_in_one_file_is_refused_with_both_lines(put):
    file = put("a.py", op(SUM), op(SIZES), kernel(SUM))
    problems = [p.what for p in gather([file]).refused]
    assert problems[0] == "the op rowsum is declared on line 5 and on line 14"


def test_helpers_of_the_same_name_beside_two_files_are_two_modules(put):
    files = []
    for folder, formula in (("a", SUM), ("b", SIZES)):
        put(f"{folder}/helper.py", f"def total(x):\n    return {formula}\n")
        files.append(put(f"{folder}/{folder}.py", "from helper import total", op("total(x)"), kernel("total(x)")))
    (_, first), (_, second) = select(files)
    import torch

    x = torch.tensor([[1.0, -2.0]])
    assert (first.reference(x).item(), second.reference(x).item()) == (-1.0, 3.0)
    assert set(verdicts(*files)[1].values()) == {"pass"}


@pytest.mark.slow
def test_bench_times_kernels_of_one_address_apart(put):
    a = put("a.py", op(SUM), kernel(SUM))
    b = put("b.py", op(SIZES), kernel(SUM))
    _, found, _ = verdicts(a, b, verb="bench", more=("--workload", "rows=8,cols=8", "--rounds", "5", "--budget", "0.1"))
    baselines = {("a.py", "rowsum/torch"): "pass", ("b.py", "rowsum/torch"): "pass"}
    assert found == {("a.py", "rowsum/torch:mine"): "pass", ("b.py", "rowsum/torch:mine"): "fail"} | baselines


@pytest.mark.slow
def test_a_users_kernel_with_the_baselines_address_is_timed_against_it(put):
    file = put("a.py", kernel(GELU, "gelu", of="gelu"))
    done = assay("bench", file, "--workload", "n=64,dtype=fp32", "--rounds", "5", "--budget", "0.1", "--json")
    records = {r["source"]["file"]: r for r in json.loads(done.out)["records"]}
    assert {r["kernel"] for r in records.values()} == {"gelu/torch"} and len(records) == 2
    assert records[str(file)]["evidence"]["baseline"] == "gelu/torch (assay/library/gelu/torch.py)"


@pytest.mark.slow
def test_run_times_only_the_namesake_that_is_right(put):
    a, b = put("a.py", op(SUM), kernel(SUM)), put("b.py", op(SUM), kernel(SIZES))
    done = assay("run", a, b, "--workloads", "4", "--rounds", "5", "--budget", "0.1", "--json")
    found = {(r["verb"], r["source"]["file"]): r["status"] for r in json.loads(done.out)["records"]}
    assert found == {("check", str(a)): "pass", ("check", str(b)): "fail", ("bench", str(a)): "pass"}


def test_list_and_inspect_know_the_op_of_each_file(put):
    a = put("a.py", op(SUM), kernel(SUM))
    done = assay("list", a, "gelu/torch", "--json")
    found = {(r["kernel"], r["workload"]) for r in json.loads(done.out)["records"]}
    assert found >= {("rowsum/torch:mine", "dtype=fp32"), ("gelu/torch", "dtype=bf16")}
    assert ("rowsum/torch:mine", "dtype=bf16") not in found
    source = textwrap.dedent(
        """
        // assay: mine<T><<<cdiv(n, 128), 128>>>(x, out, n)
        template <typename T> __global__ void mine(const T* x, T* y, long long n) {
          const long long i = blockIdx.x * 128ll + threadIdx.x;
          if (i < n) y[i] = x[i]%s;
        }
        """
    )
    files = [put("a/k.cu", source % ""), put("b/k.cu", source % " + x[i]")]
    done = assay("inspect", *files, "--op", "gelu", "--dtype", "fp32", "--summary", "--json")
    told = {(r["kernel"], r["source"]["file"]): r["evidence"]["text_hash"] for r in json.loads(done.out)["records"]}
    assert set(told) == {("gelu/cuda:k", str(f)) for f in files} and len(set(told.values())) == 2


def record(file, median, run="r1", kernel="rowsum/torch:mine"):
    return Record(
        "bench",
        kernel,
        "n=5,dtype=fp32",
        Status.PASS,
        "",
        run,
        {"device": "cpu"},
        source={"file": file},
        provenance={"cpu": "here", "time": f"2026-11-15T0{run[1]}:00:00Z"},
        median=median,
        samples=[[median * (1 + i / 1e3)] for i in range(10)],
    )


def test_compare_pairs_namesakes_by_their_files_and_a_moved_file_by_its_address():
    from assay.compare import compare

    old = [record("a.py", 1.0), record("b.py", 2.0)]
    new = [record("b.py", 2.0, "r2"), record("a.py", 1.0, "r2")]
    assert [r.evidence["verdict"] for r in compare(old, new)] == ["SAME", "SAME"]
    (moved,) = compare([record("a.py", 1.0)], [record("elsewhere/a.py", 1.0, "r2")])
    assert moved.evidence["verdict"] == "SAME"


def test_neither_the_store_nor_the_report_takes_a_namesake_for_a_newer_record(tmp_path):
    from assay.report.rows import latest
    from assay.store import open_store

    moved = [record(f"assay/library/gelu/{f}.py", 1.0, run, "gelu/torch") for f, run in (("x", "r1"), ("y", "r2"))]
    kept = [record("a.py", 1.0), record("b.py", 2.0), record("b.py", 3.0, "r2"), *moved]
    assert namesakes(kept) == {"rowsum/torch:mine"}
    with open_store(tmp_path / "s.sqlite") as store:
        for one in kept:
            store.add(one)
        stored = {(r.source["file"], r.run) for r in store.records(latest=True)}
    assert stored == {("a.py", "r1"), ("b.py", "r2"), ("assay/library/gelu/y.py", "r2")}
    drawn = {(r.kernel, r.run) for r in latest(kept)}
    assert drawn == {("rowsum/torch:mine (a.py)", "r1"), ("rowsum/torch:mine (b.py)", "r2"), ("gelu/torch", "r2")}
