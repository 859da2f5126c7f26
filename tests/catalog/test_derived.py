"""An op of one's own has `op/torch`, `op/inductor` and `op/inductor:max_autotune` by its reference alone, and they are
named like other kernels."""

import json

import pytest

from assay.catalog import library
from assay.catalog.called import called
from assay.catalog.derived import completed, derived
from assay.catalog.select import gather, select
from assay.errors import AssayError
from own_op import KERNEL, OP


def test_a_reference_is_a_kernel_of_torch_and_of_its_compiler(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write("mine.py", OP + KERNEL.format(name="mine"))
    assert [k.name for k, _ in select([file])] == ["row_sum/torch:mine"], "not asked for, not judged"
    for backend in ("torch", "inductor", "inductor:max_autotune"):
        ((kernel, op),) = select([f"mine.py:row_sum/{backend}"])
        assert (kernel.name, kernel.file, kernel.home) == (f"row_sum/{backend}", None, file)
        assert called(kernel, op) == f"mine.py:row_sum/{backend}"
        assert [k for k, _ in select([called(kernel, op)])] == [kernel]
    assert [k.name for k, _ in select([file, "row_sum/inductor"])] == ["row_sum/torch:mine", "row_sum/inductor"]


def test_a_kernel_that_is_written_is_not_derived(write):
    ops = write("ops.py", OP)
    source = 'from assay import kernel\n@kernel("ops.py:row_sum", backend="torch")\ndef row_sum(x, *, out): ...\n'
    ((written, op),) = select([write("mine.py", source)])
    assert written.name == "row_sum/torch" and op.source == str(ops)
    assert completed(op, [written]) == [written, *derived(op)[1:]]
    ((kernel, _),) = select([write("both.py", OP + KERNEL.format(name="mine")), f"{ops}:row_sum/torch"])[1:]
    assert kernel == derived(op)[0]


def test_ops_of_one_name_in_two_files_have_kernels_of_their_own(write):
    files = [write(f"{name}.py", OP.replace("row_sum", "gelu")) for name in ("a", "b")]
    kernels = [k for k, _ in select([f"{f}:gelu/torch" for f in files] + ["gelu/torch"])]
    assert [k.name for k in kernels] == ["gelu/torch"] * 3 and len({k.identity for k in kernels}) == 3
    assert kernels[2].home == library.ROOT / "gelu" / "torch.py"


@pytest.mark.parametrize(
    ("wanted", "complaint", "advice"),
    [
        (
            "mine.py:row_sum/cuda",
            "mine.py has no kernel row_sum/cuda",
            "row_sum/torch:mine, row_sum/torch, row_sum/inductor",
        ),
        ("mine.py:gelu/torch", "declares no op called 'gelu'", "it declares: row_sum"),
        ("other.py:gelu/torch:mien", "other.py has no kernel gelu/torch:mien", "did you mean gelu/torch:mine?"),
        ("row_sum/torch", "no kernel called 'row_sum/torch'", "of an op of yours: FILE.py:row_sum/torch"),
        ("none.py:row_sum/torch", "no file called none.py", "check the path"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(wanted, complaint, advice, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("mine.py", OP + KERNEL.format(name="mine"))
    write("other.py", "from assay import kernel" + KERNEL.format(name="mine").replace("row_sum", "gelu"))
    with pytest.raises(AssayError) as refused:
        select([wanted])
    assert complaint in str(refused.value) and advice in refused.value.fix
    beside = gather([wanted, "gelu/torch"])
    assert [k.name for k, _ in beside.choices] == ["gelu/torch"] and beside.refused


def test_a_derived_kernel_is_checked_like_any_other(assay, write, tmp_path):
    write("mine.py", OP)
    done = assay("check", "mine.py:row_sum/torch", "--workloads", "4", "--json", cwd=tmp_path)
    (record,) = json.loads(done.stdout)["records"]
    assert (record["kernel"], record["status"]) == ("row_sum/torch", "pass")
    assert record["replay"] == "assay check mine.py:row_sum/torch --dtype fp32"
    assert record["source"]["file"] == "mine.py" and record["source"]["hash"]


def test_list_shows_what_an_op_has_by_its_reference(write, tmp_path, assay):
    write("mine.py", OP + KERNEL.format(name="mine"))
    done = assay("list", "mine.py", "--json", cwd=tmp_path)
    names = {r["kernel"] for r in json.loads(done.stdout)["records"]}
    assert names == {"row_sum/torch:mine", "row_sum/torch", "row_sum/inductor", "row_sum/inductor:max_autotune"}
    named = assay("list", "gelu/triton", "--json", cwd=tmp_path)
    assert {r["kernel"] for r in json.loads(named.stdout)["records"]} == {"gelu/triton"}
