"""What `@kernel` says is read without running the file: literals, and constants of the module."""

import json

import pytest

from assay.catalog.reader import kernels_in
from assay.errors import SourceError
from assay.kernel import Kernel


def read(tmp_path, head, arguments):
    file = tmp_path / "f.py"
    file.write_text(f"from assay import kernel\n{head}\n\n@kernel({arguments})\ndef f(x, *, out, BLOCK=64): ...\n")
    (kernel,) = kernels_in(file, backend="triton")
    return kernel


def test_constants_of_the_module_stand_for_their_values(tmp_path):
    head = 'SIZES = [64, 128]\nTUNE = {"BLOCK": SIZES}\nGATES = {"spills": 0, "max_registers": LIMIT}\nLIMIT = 32'
    kernel = read(tmp_path, head, '"gelu", tune={"BLOCK": SIZES}, expects={"spills": 0, "max_registers": LIMIT}')
    assert kernel.tune == {"BLOCK": [64, 128]} and kernel.expects == {"spills": 0, "max_registers": 32}
    assert read(tmp_path, 'GATES = {"spills": 0}', '"gelu", expects=GATES').expects == {"spills": 0}


@pytest.mark.parametrize(
    "head",
    [
        "",
        "GATES = dict(spills=0)",
        'GATES = {"spills": 0}\nGATES = {"spills": 1}',
        'GATES = {"spills": 0}\nfor GATES in ():\n    pass',
        'if True:\n    GATES = {"spills": 0}',
        'OTHER = {"spills": 0}\nGATES = OTHER',
    ],
    ids=["not there", "a call", "given twice", "given by a loop", "in a branch", "another name"],
)
def test_what_only_running_the_file_would_tell_is_refused(tmp_path, head):
    with pytest.raises(SourceError, match="constants of its module") as refused:
        read(tmp_path, head, '"gelu", expects=GATES')
    assert refused.value.where.startswith(str(tmp_path / "f.py")) and refused.value.fix


def test_a_variant_is_the_same_function_with_other_values_of_its_parameters(tmp_path, assay):
    file = tmp_path / "f.py"
    file.write_text(
        "from assay import kernel\n\n"
        '@kernel("silu", backend="torch", variants={"doubled": {"factor": 2.0}, "same": {"factor": 1.0}})\n'
        "def f(x, *, out, factor=1.0):\n    out.copy_(x.double() * x.double().sigmoid() * factor)\n"
    )
    plain, doubled, same = kernels_in(file)
    assert [k.name for k in (plain, doubled, same)] == ["silu/torch:f", "silu/torch:f_doubled", "silu/torch:f_same"]
    assert (plain.fixed, doubled.fixed) == ({}, {"factor": 2.0}) and Kernel.from_dict(doubled.to_dict()).fixed
    done = assay("check", file, "--dtype", "fp32", "--workloads", "3", "--json")
    status = {r["kernel"]: r["status"] for r in json.loads(done.stdout)["records"]}
    assert status == {"silu/torch:f": "pass", "silu/torch:f_doubled": "fail", "silu/torch:f_same": "pass"}
